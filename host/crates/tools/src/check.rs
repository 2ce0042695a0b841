//! `pointwork policy check`: says of policy files, before a host is given them, whether it would take them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use pointwork_policy::{
    Engine, Grace, Inspection, LoadError, Policy, Presence, Settle, Slot, SlotLimits, SlotName, Target, inspect,
};

use pointwork_policy::PolicyJson;

/// Loads each file as a host would, with the configuration that lies beside it or, without one, with `{}`, and tells what it is or
/// why it would be refused; the flag is false when one of them would. `slot`: the one that all of them are meant for.
///
/// # Errors
/// When the engine cannot start on this machine.
pub fn check(files: &[PathBuf], slot: Option<SlotName>) -> anyhow::Result<(String, bool)> {
    let engine = Engine::new()?;
    let mut are_good = true;
    let mut report = String::new();
    for file in files {
        match check_file(&engine, file, slot) {
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
    let (config, named) = if beside.exists() {
        let named = beside.display().to_string();
        (serde_json::from_slice(&fs::read(&beside).context(named.clone())?).context(named.clone())?, named)
    } else {
        (PolicyJson::default(), format!("without {}, with the configuration {{}}", beside.display()))
    };
    match found {
        SlotName::Target => load::<Target>(engine, &module, &config),
        SlotName::Grace => load::<Grace>(engine, &module, &config),
        SlotName::Presence => load::<Presence>(engine, &module, &config),
        SlotName::Settle => load::<Settle>(engine, &module, &config),
    }
    .context(named)?;
    Ok(inspection)
}

fn load<S: Slot>(engine: &Engine, module: &[u8], config: &PolicyJson) -> Result<(), LoadError> {
    Policy::<S>::new(engine, SlotLimits::default()).load(module, &config.to_json()).map(|_| ())
}

fn describe(file: &Path, inspection: &Inspection) -> String {
    let info = &inspection.info;
    format!(
        "{}: {} {} for slot {}, {} bytes, sha256 {}\n  {}\n  imports {}\n",
        file.display(),
        info.name,
        info.version,
        inspection.slot,
        inspection.size_bytes,
        inspection.digest,
        info.summary,
        by_package(&inspection.imports).join(", ")
    )
}

/// `wasi:io/poll@0.2.6` and `wasi:io/error@0.2.6` as `wasi:io@0.2.6 {error poll}`.
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
    fn imports_are_told_by_package() {
        let imports = ["wasi:io/poll@0.2.6", "wasi:cli/exit@0.2.6", "wasi:io/error@0.2.6"].map(String::from);
        assert_eq!(by_package(&imports), ["wasi:cli@0.2.6 {exit}", "wasi:io@0.2.6 {error poll}"]);
    }

    #[test]
    fn a_file_that_is_no_policy_is_refused_and_the_others_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let (missing, text) = (dir.path().join("missing.wasm"), dir.path().join("text.wasm"));
        fs::write(&text, "no wasm").unwrap();
        let (report, are_good) = check(&[missing, text], None).unwrap();
        assert!(!are_good);
        assert_eq!(report.matches(": refused: ").count(), 2, "{report}");
    }
}
