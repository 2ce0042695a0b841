//! Describes each crate, and the scripts, in one line.

use std::path::Path;

use super::manifests::Crate;
use super::rooms::Folders;
use super::tree::{Tree, is_rust, shown};

/// One line for each crate: rooms and floors of its `src`, its files, and the longest of them.
pub(super) fn lines(tree: &Tree, crates: &[Crate], folders: &Folders) -> Vec<String> {
    let owner = |path: &Path| {
        let owners = crates.iter().filter(|package| path.starts_with(&package.folder));
        owners.max_by_key(|package| package.folder.components().count()).map(|package| package.folder.as_path())
    };
    let describe = |name: &str, source: &Path, files: Vec<&Path>| {
        let lines = |path: &Path| tree.sources.get(path).map_or(0, |source| source.text.lines().count());
        let longest = files.iter().copied().max_by_key(|path| lines(path))?;
        let ((rooms, floors), count) = (folders.size(source), files.len());
        let size = format!("the longest has {} lines ({})", lines(longest), shown(longest));
        Some(format!("{name}: {rooms} rooms on {floors} floors, {count} files, {size}"))
    };
    let rust = || tree.sources.keys().map(|path| path.as_path()).filter(|path| is_rust(path));
    let packages = crates.iter().filter_map(|package| {
        let files = rust().filter(|path| owner(path) == Some(&package.folder)).collect();
        describe(&shown(&package.folder), &package.folder.join("src"), files)
    });
    let scripts = tree.sources.keys().map(|path| path.as_path()).filter(|path| !is_rust(path)).collect();
    packages.chain(describe("scripts, with tests/clients", Path::new("tests/clients"), scripts)).collect()
}
