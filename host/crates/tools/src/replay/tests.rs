#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

#[test]
fn a_share_is_never_rounded_to_all() {
    let shown = |agreed, of_slot| {
        let digest = Digest::of_wasm(b"");
        Replayed { agreed, of_slot, ..Replayed::empty(digest, SlotName::Grace) }.to_string()
    };
    assert!(shown(3, 3).contains("agreement   100.00 %: 3 of 3\n"));
    assert!(shown(999_999, 1_000_000).contains("agreement   99.99 %: 999999 of 1000000\n"));
    assert!(shown(1, 1_000_000).contains("agreement   0.01 %: 1 of 1000000\n"));
    assert!(shown(0, 3).contains("agreement   0.00 %: 0 of 3\n"));
    assert!(shown(0, 0).contains("agreement   no record to compare\n"));
}

#[test]
fn a_line_that_is_no_record_is_named_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    std::fs::write(&path, "\n\n{}\n").unwrap();
    let error = format!("{:#}", each(&path, |_, _| panic!("no record")).unwrap_err());
    assert!(error.contains("r.jsonl: line 3: missing field `v`"), "{error}");
    assert!(each(&folder.path().join("none"), |_, _| ()).is_err());
}
