//! `pointwork policy check`: tells whether a host would accept policy files, and what they are.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use clap::Args;
use pointwork_policy::{
    Engine, Grace, Inspection, LoadError, Policy, PolicyJson, Presence, Settle, Slot, SlotLimits, SlotName, Target,
    inspect,
};

/// What to check.
#[derive(Args, Debug, Clone, Default)]
pub struct CheckArgs {
    /// The slot that they are meant for
    #[arg(long)]
    pub slot: Option<SlotName>,
    /// The policies' files
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

/// Loads each file as a host would, with the configuration beside it or, without one, with `{}`. Returns a report that says what
/// each file is or why a host would refuse it, and whether a host would accept all.
///
/// # Errors
/// When the engine cannot start on this machine.
pub fn check(args: &CheckArgs) -> anyhow::Result<(String, bool)> {
    let engine = Engine::new()?;
    let mut are_good = true;
    let mut report = String::new();
    for file in &args.files {
        match check_file(&engine, file, args.slot) {
            Ok(inspection) => report.push_str(&describe(file, &inspection)),
            Err(error) => {
                report.push_str(&format!("{}: refused: {error:#}\n", file.display()));
                are_good = false;
            }
        }
    }
    Ok((report, are_good))
}

fn check_file(engine: &Engine, file: &Path, slot: Option<SlotName>) -> anyhow::Result<Inspection> {
    let module = fs::read(file)?;
    let inspection = inspect(engine, &module)?;
    let found = inspection.slot;
    ensure!(slot.is_none_or(|slot| slot == found), "is for the slot {found}");
    let beside = file.with_extension("json");
    let mut name = beside.display().to_string();
    let config = if beside.exists() {
        serde_json::from_slice(&fs::read(&beside).context(name.clone())?).context(name.clone())?
    } else {
        name = format!("without {name}, with the configuration {{}}");
        PolicyJson::default()
    };
    match found {
        SlotName::Target => load::<Target>(engine, &module, &config),
        SlotName::Grace => load::<Grace>(engine, &module, &config),
        SlotName::Presence => load::<Presence>(engine, &module, &config),
        SlotName::Settle => load::<Settle>(engine, &module, &config),
    }
    .context(name)?;
    Ok(inspection)
}

fn load<S: Slot>(engine: &Engine, module: &[u8], config: &PolicyJson) -> Result<(), LoadError> {
    Policy::<S>::new(engine, SlotLimits::default()).load(module, &config.to_json()).map(|_| ())
}

fn describe(file: &Path, inspection: &Inspection) -> String {
    let Inspection { info, slot, size_bytes, digest, imports, .. } = inspection;
    let (file, imports) = (file.display(), by_package(imports).join(", "));
    let (name, version, summary) = (&info.name, &info.version, &info.summary);
    format!(
        "{file}: {name} {version} for slot {slot}, {size_bytes} bytes, sha256 {digest}\n  {summary}\n  imports {imports}\n"
    )
}

/// Groups imports by package: `wasi:io/poll@0.2.6` and `wasi:io/error@0.2.6` become `wasi:io@0.2.6 {error poll}`.
fn by_package(imports: &[String]) -> Vec<String> {
    let mut packages = BTreeMap::<String, BTreeSet<&str>>::new();
    for import in imports {
        let (path, version) = import.split_once('@').unwrap_or((import, "?"));
        let (package, interface) = path.split_once('/').unwrap_or((path, ""));
        packages.entry(format!("{package}@{version}")).or_default().insert(interface);
    }
    let list = |interfaces: BTreeSet<&str>| interfaces.into_iter().collect::<Vec<_>>().join(" ");
    packages.into_iter().map(|(package, interfaces)| format!("{package} {{{}}}", list(interfaces))).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn groups_imports_by_package() {
        let imports = ["wasi:io/poll@0.2.6", "wasi:cli/exit@0.2.6", "wasi:io/error@0.2.6"].map(String::from);
        assert_eq!(by_package(&imports), ["wasi:cli@0.2.6 {exit}", "wasi:io@0.2.6 {error poll}"]);
    }

    #[test]
    fn reports_every_file_though_some_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (missing, text) = (dir.path().join("missing.wasm"), dir.path().join("text.wasm"));
        fs::write(&text, "no wasm").unwrap();
        let (report, are_good) = check(&CheckArgs { slot: None, files: vec![missing, text] }).unwrap();
        assert!(!are_good);
        assert_eq!(report.matches(": refused: ").count(), 2, "{report}");
    }
}
