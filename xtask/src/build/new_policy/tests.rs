//! Builds, tests, checks and loads what `new-policy` writes, in a small workspace of its own that
//! has this one's settings, versions and SDK.

use std::process::Command;

use super::*;
use crate::command;

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let name = entry.unwrap().file_name();
            copy(&from.join(&name), &to.join(&name));
        }
    } else {
        fs::copy(from, to).unwrap();
    }
}

/// A workspace of nothing but the SDK and what is created in it. It builds into the target folder of `workspace`, where all but the
/// new policies is compiled already; always at the same place, so that nothing piles up there.
fn small(workspace: &Workspace, name: &str) -> Workspace {
    let root = workspace.target.join("tmp").join(name);
    if root.exists() {
        fs::remove_dir_all(&root).unwrap();
    }
    fs::create_dir_all(root.join("policies")).unwrap();
    for shared in ["Cargo.toml", "Cargo.lock", ".cargo", ".rustfmt.toml", "wit", "policies/sdk"] {
        let from = workspace.root.join(shared);
        if from.exists() {
            copy(&from, &root.join(shared));
        }
    }
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let members = |line: &&str| !line.starts_with("members = ") && !line.starts_with("default-members = ");
    let mut lines: Vec<&str> = manifest.lines().filter(members).collect();
    let at = lines.iter().position(|line| *line == "[workspace]").unwrap();
    lines.insert(at + 1, "members = [\"policies/*\"]");
    fs::write(root.join("Cargo.toml"), lines.join("\n")).unwrap();
    Workspace {
        root,
        target: workspace.target.clone(),
        policies: Vec::new(),
        hostile: Vec::new(),
        native: Vec::new(),
        wasm: Vec::new(),
    }
}

#[test]
fn a_new_policy_of_each_slot_builds_is_tested_and_is_loaded_by_the_host() {
    let here = Workspace::load().unwrap();
    let small = small(&here, "new-policy");
    let slots = Slot::value_variants();
    let name = |slot: &Slot| format!("new-{}", slot.name());
    for slot in slots {
        create(&small.root, &name(slot), *slot).unwrap();
    }
    let packages: Vec<String> = slots.iter().flat_map(|slot| ["-p".to_owned(), name(slot)]).collect();
    let run = |arguments: &[&str], packages: &[String]| {
        let mut cargo = small.cargo(arguments);
        command::run(cargo.args(packages).env("CARGO_TARGET_DIR", &small.target)).unwrap();
    };
    run(&["fmt", "--check"], &packages);
    run(&["test", "--offline"], &packages);
    run(&["build", "--offline", "--target=wasm32-wasip2", "--profile=policy"], &packages);
    for slot in slots {
        let built = small.target.join(format!("wasm32-wasip2/policy/new_{}.wasm", slot.name()));
        let vectors = small.root.join("policies").join(name(slot)).join("vectors.jsonl");
        let host = |arguments: &[&str]| {
            let mut host = Command::new(here.host());
            command::output(host.arg("policy").args(arguments).arg(&built)).unwrap()
        };
        let checked = host(&["check", "--slot", slot.name()]);
        assert!(checked.contains(&format!("{} 0.1.0 for slot {}", name(slot), slot.name())), "{checked}");
        let tested = host(&["test", "--count", "200", "--vectors", &vectors.to_string_lossy()]);
        let all = slot.template().2.lines().count();
        assert!(tested.contains(&format!("vectors     {all} of {all} as they should be")), "{tested}");
    }
}

#[test]
fn names_that_cannot_be_a_folder_a_package_and_a_library_are_refused() {
    for good in ["settle-calm", "a", "target-2", "grace-x-y-z9"] {
        validate(good).unwrap();
    }
    let long = "a".repeat(49);
    for bad in
        ["", "-a", "a-", "a--b", "Settle", "9lives", "a_b", "a/b", "../sdk", "a.b", "ä", "fn", "core", long.as_str()]
    {
        assert!(validate(bad).is_err(), "{bad}");
    }
    assert!(RESERVED.is_sorted());
}

#[test]
fn nothing_is_overwritten_and_no_name_is_given_twice() {
    let root = std::env::temp_dir().join(format!("pointwork-new-policy-{}", std::process::id()));
    fs::create_dir_all(root.join("policies/there")).unwrap();
    fs::write(root.join("Cargo.lock"), "[[package]]\nname = \"serde\"\nversion = \"1.0.0\"\n").unwrap();
    fs::write(root.join("policies/file"), "mine").unwrap();
    for name in ["there", "file", "serde", "../outside"] {
        assert!(create(&root, name, Slot::Settle).is_err(), "{name}");
    }
    assert_eq!(fs::read_dir(root.join("policies/there")).unwrap().count(), 0);
    assert_eq!(fs::read_to_string(root.join("policies/file")).unwrap(), "mine");
    assert_eq!(fs::read_dir(root.join("policies")).unwrap().count(), 2);
    create(&root, "settle-calm", Slot::Settle).unwrap();
    assert!(create(&root, "settle-calm", Slot::Settle).is_err());
    let manifest = fs::read_to_string(root.join("policies/settle-calm/Cargo.toml")).unwrap();
    assert!(manifest.contains("name = \"settle-calm\"") && !manifest.contains("{{"), "{manifest}");
    fs::remove_dir_all(&root).unwrap();
}
