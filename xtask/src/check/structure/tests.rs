use std::fs;
use std::process::Command;

use tempfile::TempDir;

use super::*;

const RULES: &str = r#"
    [bounds]
    siblings = 14
    floors = 7
    file_lines = 600
    function_lines = 60

    [crates]
    "app" = ["low"]
    "low" = []

    [rooms."app/src"]
    lib = []
    main = ["upper"]
    upper = ["lower"]
    lower = []
"#;

/// A tree of two crates that keeps all rules.
const SOUND: [(&str, &str); 11] = [
    ("xtask/structure.toml", RULES),
    ("app/Cargo.toml", "[package]\nname = \"app\"\n[dependencies]\nlow.path = \"../low\"\n"),
    ("app/src/lib.rs", "//! An app.\nmod lower;\npub mod upper;\n"),
    ("app/src/main.rs", "fn main() { app::upper::run() }"),
    ("app/src/upper.rs", "use crate::lower::{One, two as second};\npub fn run() { second(One) }"),
    ("app/src/lower/mod.rs", "mod one;\nmod two;\npub(crate) use one::One;\npub(crate) use two::two;\n"),
    ("app/src/lower/one.rs", "pub(crate) struct One;\n#[cfg(test)]\nmod tests { use crate::upper::run; }"),
    ("app/src/lower/two.rs", "use super::One;\npub(crate) fn two(_: One) {}"),
    ("low/Cargo.toml", "[package]\nname = \"low\"\n"),
    ("low/src/lib.rs", "pub fn low() {}"),
    ("web/index.mjs", "import { a } from './a.mjs';"),
];

/// Plants files into the sound tree, and gives what the check prints.
fn findings(planted: &[(&str, &str)]) -> Vec<String> {
    let report = report(planted);
    report.findings.iter().map(ToString::to_string).collect()
}

fn report(planted: &[(&str, &str)]) -> Report {
    let tree = TempDir::new().unwrap();
    for (path, text) in SOUND.iter().chain(planted) {
        let file = tree.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    assert!(Command::new("git").args(["init", "--quiet"]).arg(tree.path()).status().unwrap().success());
    check(tree.path(), &tree.path().join("xtask/structure.toml")).unwrap()
}

/// Expects one finding, which holds all of these texts.
#[track_caller]
fn assert_one(findings: &[String], texts: &[&str]) {
    let [finding] = findings else { panic!("not one finding: {findings:#?}") };
    for text in texts {
        assert!(finding.contains(text), "{finding} lacks {text}");
    }
}

#[test]
fn accepts_a_tree_that_keeps_the_rules() {
    let report = report(&[("web/a.mjs", "export const a = 1;")]);
    assert_eq!(report.findings, []);
    let [app, low, scripts] = &report.summary[..] else { panic!("{:#?}", report.summary) };
    assert!(app.starts_with("app: 4 rooms on 3 floors, 6 files"), "{app}");
    assert!(low.starts_with("low: 1 rooms on 1 floors, 1 files"), "{low}");
    assert!(scripts.contains("2 files"), "{scripts}");
    let shown = report.folders.show(Path::new("app/src"));
    assert!(shown.contains(&r#"upper = {"lower"} # floor 2"#.to_owned()), "{shown:?}");
}

#[test]
fn rejects_a_circle_of_two_files() {
    let planted = [
        ("low/src/lib.rs", "mod one;\nmod two;\n"),
        ("low/src/one.rs", "use crate::two::Two;\npub struct One(Two);"),
        ("low/src/two.rs", "pub struct Two;\nfn make() { println!(\"{}\", super::one::One::NAME) }"),
    ];
    assert_one(&findings(&planted), &["low/src/one.rs:1 → low/src/two.rs", "low/src/two.rs:2 → low/src/one.rs"]);
}

#[test]
fn rejects_a_circle_of_a_module_and_its_child() {
    let planted = [
        ("low/src/lib.rs", "mod one;\n"),
        ("low/src/one.rs", "mod child;\npub struct One;\nfn make() { child::make() }"),
        ("low/src/one/child.rs", "use super::*;\npub fn make() -> One { One }"),
    ];
    assert_one(&findings(&planted), &["low/src/one.rs:3 → low/src/one/child.rs"]);
}

#[test]
fn rejects_a_circle_of_two_folders_whose_files_have_none() {
    let planted = [
        ("low/src/lib.rs", "mod one;\nmod two;\n"),
        ("low/src/one/mod.rs", "mod a;\nmod b;\npub use a::A;\npub use b::B;\n"),
        ("low/src/one/a.rs", "use crate::two::C;\npub struct A(C);"),
        ("low/src/one/b.rs", "pub struct B;"),
        ("low/src/two/mod.rs", "mod c;\nmod d;\npub use c::*;\npub use d::*;\n"),
        ("low/src/two/c.rs", "pub struct C;"),
        ("low/src/two/d.rs", "use crate::one::B;\npub struct D(B);"),
    ];
    let texts = ["low/src: Circle", "low/src/one/a.rs:1 → low/src/two/c.rs", "low/src/two/d.rs:1 → low/src/one/b.rs"];
    assert_one(&findings(&planted), &texts);
}

#[test]
fn rejects_a_circle_of_scripts() {
    let planted = [("web/a.mjs", "import {\n  b,\n} from \"./index.mjs\";")];
    assert_one(&findings(&planted), &["web/a.mjs:3 → web/index.mjs", "web/index.mjs:1 → web/a.mjs"]);
}

#[test]
fn rejects_a_fifteenth_sibling() {
    let names: Vec<String> = (1..=15).map(|number| format!("low/src/n{number}.rs")).collect();
    let planted: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    // `lib.rs` is a sibling too; a folder beside its file and files of data are none.
    let more = [("low/src/n1/inner.rs", ""), ("low/src/notes.json", "")];
    assert_eq!(findings(&[&planted[..13], &more].concat()), Vec::<String>::new());
    assert_one(&findings(&[&planted[..14], &more].concat()), &["low/src: Siblings", "15", "14", "n7"]);
}

#[test]
fn rejects_an_eighth_floor() {
    let file = |floor: usize| match floor {
        1 => String::new(),
        _ => format!("use crate::f{}::*;", floor - 1),
    };
    let files: Vec<(String, String)> = (1..=8).map(|floor| (format!("low/src/f{floor}.rs"), file(floor))).collect();
    let mut planted: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    planted.push(("low/src/lib.rs", "mod f1; mod f2; mod f3; mod f4; mod f5; mod f6; mod f7; mod f8;"));
    assert_one(&findings(&planted), &["low/src: Floors", "8", "f8 → f7 → f6 → f5 → f4 → f3 → f2 → f1"]);
    planted.remove(7);
    assert_eq!(findings(&planted), Vec::<String>::new());
}

#[test]
fn rejects_an_arrow_against_the_table_of_rooms() {
    let upward = [("app/src/lower/two.rs", "use super::One;\npub(crate) fn two(_: One) { crate::upper::run() }")];
    let found = findings(&upward);
    let arrow = "`lower` may not know `upper` (1 imports, such as app/src/lower/two.rs:2 → app/src/upper.rs)";
    assert!(found.iter().any(|finding| finding.contains(arrow)), "{found:#?}");
    let unlisted = [("app/src/extra.rs", "")];
    assert_one(&findings(&unlisted), &["app/src: Rooms", "`extra`"]);
}

#[test]
fn rejects_a_dependency_against_the_table_of_crates() {
    let planted =
        [("low/Cargo.toml", "[package]\nname = \"low\"\n[target.'cfg(unix)'.dependencies]\napp.path = \"../app\"")];
    assert_one(&findings(&planted), &["low: Crates", "app", "low/Cargo.toml"]);
    let planted = [("low/Cargo.toml", "[package]\nname = \"low\"\n[dev-dependencies]\napp.path = \"../app\"")];
    assert_eq!(findings(&planted), Vec::<String>::new());
    let planted = [("new/Cargo.toml", "[package]\nname = \"new\"\n")];
    assert_one(&findings(&planted), &["new: Crates"]);
}

#[test]
fn rejects_a_file_of_601_lines() {
    assert_eq!(findings(&[("web/a.mjs", &"\n".repeat(600))]), Vec::<String>::new());
    assert_one(&findings(&[("web/a.mjs", &"\n".repeat(601))]), &["web/a.mjs: FileLines", "601", "600"]);
}

#[test]
fn rejects_a_long_function_in_tests_too() {
    let file = |lines: usize| {
        format!("#[cfg(test)]\nmod tests {{\n    #[test]\n    fn long() {{{}    }}\n}}", "\n".repeat(lines - 1))
    };
    assert_eq!(findings(&[("low/src/lib.rs", &file(60))]), Vec::<String>::new());
    assert_one(
        &findings(&[("low/src/lib.rs", &file(61))]),
        &["low/src/lib.rs: FunctionLines", "`long` at line 4", "61"],
    );
}

#[test]
fn accepts_an_exception_while_the_rule_is_broken() {
    let exception = "[[exceptions]]\nrule = \"file_lines\"\nat = \"web/a.mjs\"\nreason = \"generated\"";
    let rules = format!("{RULES}{exception}");
    let long = "\n".repeat(601);
    let planted = [("xtask/structure.toml", rules.as_str()), ("web/a.mjs", &long)];
    assert_eq!(findings(&planted), Vec::<String>::new());
    assert_one(&findings(&planted[..1]), &["web/a.mjs: Exceptions", "generated"]);
}

#[test]
fn reports_a_file_that_cannot_be_parsed() {
    assert_one(&findings(&[("low/src/lib.rs", "fn {")]), &["low/src/lib.rs: Syntax"]);
}
