//! Reads the relative imports of JavaScript and TypeScript.

use std::path::Path;

use super::arrows::Arrows;
use super::tree::{Tree, is_rust, normal};

/// One arrow for each relative import of a file that is in the tree.
pub(super) fn arrows(tree: &Tree) -> Arrows {
    let mut arrows = Arrows::default();
    for (path, source) in tree.sources.iter().filter(|(path, _)| !is_rust(path)) {
        let folder = path.parent().unwrap_or(Path::new(""));
        for (specifier, line) in imports(&source.text) {
            let target = normal(&folder.join(specifier));
            if tree.sources.contains_key(&target) {
                arrows.add(path, &target, line);
            }
        }
    }
    arrows
}

/// The relative specifiers of `import`, `export … from` and `import(…)`, each with its line.
fn imports(text: &str) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    for quote in ['\'', '"'] {
        for (at, _) in text.match_indices(&format!("{quote}.")) {
            let before = text[..at].trim_end();
            let before = before.strip_suffix('(').unwrap_or(before);
            let specifier = text[at + 1..].split(quote).next().unwrap_or_default();
            if before.ends_with("from") || before.ends_with("import") {
                found.push((specifier, before.lines().count()));
            }
        }
    }
    found
}
