//! Checks the Dockerfile without building it: what it copies exists and is not ignored, what it builds exists, and the compiler and
//! the C library are the right ones.

use std::collections::BTreeSet;

use anyhow::Result;

use super::complaints;
use crate::workspace::Workspace;

/// Debian's releases, as the two base images name them.
const RELEASES: [(&str, &str); 2] = [("bookworm", "debian12"), ("trixie", "debian13")];

/// Errors with everything that is wrong.
pub(super) fn check(workspace: &Workspace) -> Result<()> {
    let (dockerfile, ignored) =
        (workspace.read("deploy/Dockerfile")?, workspace.read("deploy/Dockerfile.dockerignore")?);
    let toolchain = workspace.read("rust-toolchain.toml")?;
    let policies = workspace.policies.iter().map(|policy| policy.package.as_str()).collect();
    let exists = |path: &str| workspace.root.join(path).exists();
    let mut wrong = copies(&dockerfile, &ignored, exists);
    wrong.extend(builds(&dockerfile, &policies));
    wrong.extend(bases(&dockerfile, &toolchain));
    complaints::refuse("deploy/Dockerfile", &wrong)
}

/// Each instruction on one line, without comments.
fn instructions(dockerfile: &str) -> Vec<String> {
    let lines = dockerfile.lines().filter(|line| !line.trim_start().starts_with('#'));
    let joined = lines.fold(String::new(), |text, line| match line.strip_suffix('\\') {
        Some(begun) => text + begun,
        None => text + line + "\n",
    });
    joined
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|line| !line.is_empty())
        .collect()
}

/// Checks that what is copied exists and is not ignored, and that what is not ignored is copied.
fn copies(dockerfile: &str, ignored: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let let_in: BTreeSet<_> = ignored.lines().filter_map(|line| line.strip_prefix('!')).collect();
    let mut copied = BTreeSet::new();
    let mut wrong = Vec::new();
    let copy = |line: String| line.strip_prefix("COPY ").map(str::to_owned);
    for sources in instructions(dockerfile).into_iter().filter_map(copy).filter(|line| !line.starts_with("--from=")) {
        let mut sources: Vec<_> = sources.split(' ').map(str::to_owned).collect();
        sources.pop();
        for source in sources {
            if !exists(&source) {
                wrong.push(format!("copies {source}, which is not there"));
            }
            match let_in.iter().find(|entry| source == **entry || source.starts_with(&format!("{entry}/"))) {
                Some(entry) => drop(copied.insert(*entry)),
                None => wrong.push(format!("copies {source}, which Dockerfile.dockerignore leaves out")),
            }
        }
    }
    wrong.extend(
        let_in
            .difference(&copied)
            .map(|entry| format!("Dockerfile.dockerignore lets in {entry}, which nothing copies")),
    );
    wrong
}

/// Checks that all policies are built, as `cargo xtask policies` does, and the host, as README says, with the locked versions.
fn builds(dockerfile: &str, policies: &BTreeSet<&str>) -> Vec<String> {
    let steps: Vec<_> = instructions(dockerfile).into_iter().filter(|line| line.contains("cargo build")).collect();
    let mut wrong = Vec::new();
    for command in [
        "cargo build --locked --target=wasm32-wasip2 --profile=policy \"${policies[@]/#/--package=}\"",
        "cargo build --locked --release --package=pointwork",
    ] {
        if !steps.iter().any(|step| step.contains(command)) {
            wrong.push(format!("no step runs {command}"));
        }
    }
    let listed = steps.iter().find_map(|step| step.split_once("policies=(")?.1.split_once(')'));
    let listed: BTreeSet<_> = listed.map(|(names, _)| names.split_whitespace().collect()).unwrap_or_default();
    if listed != *policies {
        wrong.push(format!("builds the policies {listed:?}; those that ship are {policies:?}"));
    }
    wrong
}

/// Checks that the compiler is the workspace's, that both images have the same C library, and that the last user is not root.
fn bases(dockerfile: &str, toolchain: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let channel =
        toolchain.lines().find_map(|line| line.strip_prefix("channel = \"")?.strip_suffix('"')).unwrap_or_default();
    let lines = instructions(dockerfile);
    let from: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("FROM ")).collect();
    let is_right = |(release, number): &(&str, &str)| {
        from.first().is_some_and(|base| base.starts_with(&format!("rust:{channel}-slim-{release} ")))
            && from.last().is_some_and(|base| base.contains(&format!("-{number}:")))
    };
    if !RELEASES.iter().any(is_right) {
        wrong.push(format!("the stages are {from:?}: rust {channel} and the same Debian in both are needed"));
    }
    for line in [format!("ENV RUSTUP_TOOLCHAIN={channel}"), "STOPSIGNAL SIGTERM".to_owned()] {
        if !lines.contains(&line) {
            wrong.push(format!("lacks {line}"));
        }
    }
    let user = lines.iter().filter_map(|line| line.strip_prefix("USER ")).next_back();
    if user.and_then(|user| user.split(':').next()?.parse::<u32>().ok()).is_none_or(|user| user == 0) {
        wrong.push("its last user must be a number, and not root's: Kubernetes cannot judge a name".to_owned());
    }
    wrong
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    const DOCKERFILE: &str = include_str!("../../../../deploy/Dockerfile");
    const IGNORED: &str = include_str!("../../../../deploy/Dockerfile.dockerignore");
    const TOOLCHAIN: &str = "channel = \"1.95.0\"\n";
    const POLICIES: &str = "grace-adaptive grace-fixed presence-seed presence-tolerant settle-adaptive settle-hold settle-newest \
                            target-first target-least-loaded";

    fn wrong(from: &str, to: &str) -> Vec<String> {
        assert!(from.is_empty() || DOCKERFILE.contains(from), "{from}");
        let dockerfile = if from.is_empty() { DOCKERFILE.to_owned() } else { DOCKERFILE.replacen(from, to, 1) };
        let mut wrong = copies(&dockerfile, IGNORED, |path| path != "gone");
        wrong.extend(builds(&dockerfile, &POLICIES.split_whitespace().collect()));
        wrong.extend(bases(&dockerfile, TOOLCHAIN));
        wrong
    }

    #[test]
    fn each_slip_is_found() {
        assert_eq!(wrong("", ""), Vec::<String>::new());
        for (from, to, complaint) in [
            ("COPY wit wit", "COPY wit wit\nCOPY gone gone", "is not there"),
            ("COPY wit wit", "COPY wit wit\nCOPY docs docs", "leaves out"),
            ("COPY wit wit", "", "lets in wit"),
            ("settle-hold ", "", "builds the policies"),
            ("--locked --release", "--release", "no step runs"),
            ("--profile=policy", "--release", "no step runs"),
            ("rust:1.95.0", "rust:1.94.0", "rust 1.95.0"),
            ("cc-debian12", "cc-debian13", "the same Debian"),
            ("RUSTUP_TOOLCHAIN=1.95.0", "RUSTUP_TOOLCHAIN=1.94.0", "lacks ENV"),
            ("USER 65532:65532", "USER nonroot", "must be a number"),
            ("USER 65532:65532", "USER 0", "not root's"),
        ] {
            let found = wrong(from, to);
            assert!(found.iter().any(|what| what.contains(complaint)), "{from} -> {to}: {found:?}");
        }
    }
}
