//! Checks each folder: how many rooms it has, how deep they import each other, and who may know whom.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use super::arrows::{Arrows, Graph};
use super::finding::{Finding, Rule};
use super::rules::Rules;
use super::tree::{Tree, shown};

/// The folders that hold sources.
pub(super) struct Folders(BTreeMap<PathBuf, Folder>);

/// The rooms of one folder: files, and subfolders with sources. `x.rs` and `x/` are one room.
#[derive(Default)]
struct Folder {
    rooms: BTreeSet<String>,
    graph: Graph,
    /// Room and the room that it imports -> one import of a file, and how many there are.
    imports: BTreeMap<(String, String), (String, usize)>,
}

impl Folders {
    pub(super) fn new(tree: &Tree, arrows: &Arrows) -> Self {
        let mut folders: BTreeMap<PathBuf, Folder> = BTreeMap::new();
        for path in tree.sources.keys() {
            for inner in path.ancestors() {
                if let Some(folder) = inner.parent() {
                    folders.entry(folder.to_owned()).or_default().rooms.insert(room(inner));
                }
            }
        }
        for (from, to, line) in arrows.iter() {
            let (folder, importer, imported) = siblings(from, to);
            if importer != imported {
                let folder = folders.entry(folder).or_default();
                folder.graph.edge(&importer, &imported);
                let import = || (format!("{}:{line} → {}", shown(from), shown(to)), 0);
                folder.imports.entry((importer, imported)).or_insert_with(import).1 += 1;
            }
        }
        Self(folders)
    }

    /// Folders that break a rule.
    pub(super) fn check(&self, rules: &Rules) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (path, folder) in &self.0 {
            let at = if path.as_os_str().is_empty() { ".".to_owned() } else { shown(path) };
            findings.extend(folder.check_size(&at, rules.bounds.siblings));
            findings.extend(folder.check_depth(&at, rules.bounds.floors));
            findings.extend(folder.check_circles(&at, path));
            if let Some(table) = rules.rooms.get(path) {
                findings.extend(folder.check_table(&at, table));
            }
        }
        findings
    }

    /// How many rooms and floors a folder has.
    pub(super) fn size(&self, folder: &Path) -> (usize, usize) {
        self.0.get(folder).map_or((0, 0), |folder| (folder.rooms.len(), folder.floors().max(1)))
    }

    /// The rooms of a folder as rows of the table of rooms, the lowest floor first.
    pub(super) fn show(&self, folder: &Path) -> Vec<String> {
        let Some(folder) = self.0.get(folder) else {
            return vec![format!("{}: no sources", folder.display())];
        };
        let chains = folder.graph.chains();
        let floor = |room: &String| chains.get(room).map_or(1, Vec::len);
        let mut rooms: Vec<&String> = folder.rooms.iter().collect();
        rooms.sort_by_key(|room| floor(room));
        rooms.iter().map(|room| format!("{room} = {:?} # floor {}", folder.graph.known(room), floor(room))).collect()
    }
}

impl Folder {
    fn floors(&self) -> usize {
        self.graph.chains().values().map(Vec::len).max().unwrap_or(0)
    }

    fn check_size(&self, at: &str, bound: usize) -> Option<Finding> {
        let count = self.rooms.len();
        let rooms: Vec<&str> = self.rooms.iter().map(String::as_str).collect();
        let text = || format!("has {count} siblings, the bound is {bound}: group them ({})", rooms.join(", "));
        (count > bound).then(|| Finding::new(Rule::Siblings, at, text()))
    }

    fn check_depth(&self, at: &str, bound: usize) -> Option<Finding> {
        let chain = self.graph.chains().into_values().max_by_key(Vec::len)?;
        let (count, way) = (chain.len(), chain.join(" → "));
        let text = || format!("has {count} floors, the bound is {bound}: shorten the chain {way}");
        (count > bound).then(|| Finding::new(Rule::Floors, at, text()))
    }

    /// A circle of files alone is found among the files.
    fn check_circles(&self, at: &str, path: &Path) -> Vec<Finding> {
        let is_folder = |room: &String| self.imports_of_folder(room, path);
        let circles = self.graph.circles().into_iter().filter(|(_, circle)| circle.iter().any(is_folder));
        let text = |(size, circle): (usize, Vec<String>)| {
            let steps = circle.windows(2).filter_map(|pair| self.imports.get(&(pair[0].clone(), pair[1].clone())));
            let steps: Vec<String> = steps.map(|(import, count)| format!("{import} (of {count})")).collect();
            format!(
                "{size} rooms import each other, the shortest circle is {}: {}; move what both need into a room below them",
                circle.join(" → "),
                steps.join(", ")
            )
        };
        circles.map(|circle| Finding::new(Rule::Circle, at, text(circle))).collect()
    }

    /// Whether a room that takes part in imports has a folder.
    fn imports_of_folder(&self, room: &str, path: &Path) -> bool {
        let start = format!("{}/", shown(&path.join(room)));
        self.imports.values().any(|(import, _)| import.split(" → ").any(|file| file.starts_with(&start)))
    }

    fn check_table(&self, at: &str, table: &BTreeMap<String, Vec<String>>) -> Vec<Finding> {
        let unlisted = self.rooms.iter().filter(|room| !table.contains_key(*room));
        let unlisted = unlisted.map(|room| {
            let text =
                format!("the room `{room}` is not in the table of rooms: move it into one, or add it to the table");
            Finding::new(Rule::Rooms, at, text)
        });
        let allowed = |from: &String, to: &String| table.get(from).is_none_or(|known| known.contains(to));
        let arrows = self.imports.iter().filter(|((from, to), _)| !allowed(from, to));
        let arrows = arrows.map(|((from, to), (import, count))| {
            let text = format!(
                "`{from}` may not know `{to}` ({count} imports, such as {import}): turn the import around, or move what is imported below"
            );
            Finding::new(Rule::Rooms, at, text)
        });
        unlisted.chain(arrows).collect()
    }
}

/// The name of a file without its extension, or of a folder.
fn room(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let kinds = [".rs", ".mjs", ".ts"];
    kinds.iter().find_map(|kind| name.strip_suffix(kind)).unwrap_or(&name).to_owned()
}

/// The deepest folder that holds both files, and the room of each in it.
fn siblings(one: &Path, other: &Path) -> (PathBuf, String, String) {
    let common: PathBuf =
        one.components().zip(other.components()).map_while(|(one, other)| (one == other).then_some(one)).collect();
    let within = |path: &Path| {
        let rest: Option<Component<'_>> = path.strip_prefix(&common).ok().and_then(|rest| rest.components().next());
        rest.map(|part| room(Path::new(&part))).unwrap_or_default()
    };
    let rooms = (within(one), within(other));
    (common, rooms.0, rooms.1)
}
