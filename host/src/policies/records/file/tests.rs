#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

fn lines(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|number| format!("{number:09}\n")).collect()
}

#[test]
fn rotates_full_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let mut files = RecordFiles::open(&path, 30, 3).unwrap();
    for batch in [0..2, 2..9, 9..10] {
        let batch = lines(batch);
        let (written, error) = files.append(&batch);
        assert!(error.is_none() && written == batch.len());
    }
    let read = |number: usize| {
        let path = if number == 0 { path.clone() } else { named(&path, number) };
        fs::read_to_string(path).unwrap_or_default()
    };
    assert_eq!(read(0), lines(9..10).concat());
    assert_eq!(read(1), lines(6..9).concat());
    assert_eq!(read(2), lines(3..6).concat());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "the first one is gone");
}

/// A folder with the name of the new file prevents that it is opened, as a full disk does.
#[test]
fn loses_no_file_when_the_new_one_cannot_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let mut files = RecordFiles::open(&path, 30, 3).unwrap();
    assert_eq!(files.append(&lines(0..9)).0, 9);
    let read = |number: usize| {
        let path = if number == 0 { path.clone() } else { named(&path, number) };
        fs::read_to_string(path).unwrap_or_default()
    };
    let before = [read(0), read(1), read(2)];
    let new = folder.path().join("r.jsonl.new");
    fs::create_dir(&new).unwrap();
    for _ in 0..5 {
        let (written, error) = files.append(&lines(9..10));
        assert!(written == 0 && error.is_some());
        assert_eq!([read(0), read(1), read(2)], before);
    }
    fs::remove_dir(&new).unwrap();
    assert_eq!(files.append(&lines(9..10)).0, 1);
    assert_eq!([read(0), read(1), read(2)], [lines(9..10).concat(), before[0].clone(), before[1].clone()]);
}

#[test]
fn continues_after_its_file_was_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let mut files = RecordFiles::open(&path, 30, 3).unwrap();
    assert_eq!(files.append(&lines(0..6)).0, 6);
    fs::remove_file(&path).unwrap();
    assert_eq!(files.append(&lines(6..7)).0, 1);
    assert_eq!(fs::read_to_string(&path).unwrap(), lines(6..7).concat());
    assert_eq!(fs::read_to_string(named(&path, 1)).unwrap(), lines(0..3).concat());
    assert!(!named(&path, 2).exists(), "nothing was passed on twice");
}

#[test]
fn a_single_file_is_emptied_when_it_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let mut files = RecordFiles::open(&path, 30, 1).unwrap();
    files.append(&lines(0..4));
    assert_eq!(fs::read_to_string(&path).unwrap(), lines(3..4).concat());
}

#[test]
fn removes_a_line_that_was_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    for (found, kept) in [("one\ntwo\nthr", "one\ntwo\n"), ("on", ""), ("", ""), ("one\n", "one\n")] {
        fs::write(&path, found).unwrap();
        let mut files = RecordFiles::open(&path, 1_000, 2).unwrap();
        files.append(&["new\n".to_owned()]);
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{kept}new\n"));
    }
    fs::write(&path, vec![0; LINE_MAX_BYTES + 1]).unwrap();
    assert!(RecordFiles::open(&path, 1_000, 2).is_err(), "no file of records");
}

#[test]
fn a_file_has_one_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let mut files = RecordFiles::open(&path, 10, 2).unwrap();
    assert!(RecordFiles::open(&path, 10, 2).is_err());
    files.append(&lines(0..2));
    assert!(RecordFiles::open(&path, 10, 2).is_err(), "the next one, too");
    drop(files);
    assert!(RecordFiles::open(&path, 10, 2).is_ok());
    assert!(RecordFiles::open(&folder.path().join("no/r.jsonl"), 10, 2).is_err());
}

#[test]
fn reports_a_full_disk_and_leaves_no_half_line() {
    // Every write to it fails, as on a full disk.
    let Ok(file) = OpenOptions::new().append(true).open("/dev/full") else { panic!("/dev/full is part of Linux") };
    let mut files = RecordFiles { path: "/dev/full".into(), file, bytes: 0, bytes_max: 1_000, files: 2 };
    let (written, error) = files.append(&lines(0..3));
    assert_eq!((written, error.unwrap().kind()), (0, io::ErrorKind::StorageFull));
    assert_eq!(files.bytes, 0);
}
