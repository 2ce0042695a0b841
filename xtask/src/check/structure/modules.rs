//! Follows the modules of a crate from its root, and turns each path into an arrow to the file that defines what it names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use syn::{Expr, Item, ItemMod, Lit, Meta};

use super::arrows::Arrows;
use super::manifests::Crate;
use super::paths::{self, Named};
use super::tree::{Tree, normal};

/// Re-exports of re-exports: beyond any real chain, and an end for a name that imports itself.
const DEPTH_MAX: usize = 16;

/// The arrows between the files of each crate.
pub(super) fn arrows(tree: &Tree, crates: &[Crate]) -> Arrows {
    let mut arrows = Arrows::default();
    for package in crates {
        let mut modules = Modules { tree, library: None, all: Vec::new() };
        if let Some(root) = &package.root {
            modules.library = Some((package.library.clone(), modules.load(root, None)));
        }
        for root in &package.programs {
            modules.load(root, None);
        }
        modules.draw(&mut arrows);
    }
    arrows
}

struct Modules<'a> {
    tree: &'a Tree,
    /// The library's name and root module.
    library: Option<(String, usize)>,
    all: Vec<Module>,
}

#[derive(Default)]
struct Module {
    file: PathBuf,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    /// What is defined here: `None`; what is imported: from where.
    names: BTreeMap<String, Option<Vec<String>>>,
    globs: Vec<Vec<String>>,
    named: Vec<Named>,
}

impl Modules<'_> {
    /// Reads a file and the modules that it declares.
    fn load(&mut self, file: &Path, parent: Option<usize>) -> usize {
        let is_index = parent.is_none() || file.ends_with("mod.rs");
        let folder = if is_index { file.parent().unwrap_or(file).to_owned() } else { file.with_extension("") };
        let tree = self.tree;
        let items = tree.sources.get(file).and_then(|source| source.syntax.as_ref()).map(|syntax| &syntax.items[..]);
        self.fill(file, &folder, parent, items.unwrap_or_default())
    }

    fn fill(&mut self, file: &Path, folder: &Path, parent: Option<usize>, items: &[Item]) -> usize {
        let id = self.all.len();
        self.all.push(Module { file: file.to_owned(), parent, ..Module::default() });
        for item in items.iter().filter(|item| !paths::is_test(paths::attributes(item))) {
            match item {
                Item::Mod(module) => {
                    if let Some(child) = self.declare(file, folder, id, module) {
                        self.all[id].children.insert(module.ident.to_string(), child);
                    }
                }
                Item::Use(item) => {
                    for import in paths::imports(item) {
                        let segments = import.path.segments.clone();
                        match import.name {
                            Some(name) => drop(self.all[id].names.insert(name, Some(segments))),
                            None => self.all[id].globs.push(segments),
                        }
                        self.all[id].named.push(import.path);
                    }
                }
                item => {
                    if let Some(name) = defined(item) {
                        self.all[id].names.insert(name, None);
                    }
                    let named = paths::named(item);
                    self.all[id].named.extend(named);
                }
            }
        }
        id
    }

    fn declare(&mut self, file: &Path, folder: &Path, parent: usize, module: &ItemMod) -> Option<usize> {
        let name = module.ident.to_string();
        if let Some((_, items)) = &module.content {
            return Some(self.fill(file, &folder.join(name), Some(parent), items));
        }
        let written = module.attrs.iter().find_map(path_attribute);
        let candidates = match written {
            Some(path) => vec![normal(&file.parent()?.join(path))],
            None => vec![folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")],
        };
        let found = candidates.into_iter().find(|path| self.tree.sources.contains_key(path))?;
        Some(self.load(&found, Some(parent)))
    }

    fn draw(&self, arrows: &mut Arrows) {
        for (id, module) in self.all.iter().enumerate() {
            for named in &module.named {
                let Some(target) = self.resolve(id, &named.segments, 0) else { continue };
                let target = &self.all[target].file;
                if !(self.is_facade(&module.file) && target.starts_with(room(&module.file))) {
                    arrows.add(&module.file, target, named.line);
                }
            }
        }
    }

    /// The module that defines what a path names; `None` for another crate's.
    fn resolve(&self, from: usize, path: &[String], depth: usize) -> Option<usize> {
        if depth > DEPTH_MAX {
            return None;
        }
        let (first, rest) = path.split_first()?;
        let (start, mut rest) = match first.as_str() {
            "crate" => (self.root(from), rest),
            "self" => (from, rest),
            "super" => (self.all[from].parent?, rest),
            name => match self.find(from, name, path, depth) {
                Found::Here(module) => return Some(module),
                Found::Elsewhere => return None,
                Found::Nowhere => {
                    let (library, root) = self.library.as_ref()?;
                    (*(library == name && self.root(from) != *root).then_some(root)?, rest)
                }
            },
        };
        let mut module = start;
        while let Some((_, after)) = rest.split_first().filter(|(first, _)| *first == "super") {
            (module, rest) = (self.all[module].parent?, after);
        }
        let Some(name) = rest.first() else { return Some(module) };
        match self.find(module, name, rest, depth) {
            Found::Here(module) => Some(module),
            Found::Elsewhere => None,
            // Written by a macro.
            Found::Nowhere => Some(module),
        }
    }

    /// Looks up a path whose first segment is a name in this module.
    fn find(&self, module: usize, name: &str, path: &[String], depth: usize) -> Found {
        let rest = path.get(1..).unwrap_or_default();
        let scope = &self.all[module];
        if let Some(child) = scope.children.get(name) {
            let Some(next) = rest.first() else { return Found::Here(*child) };
            return match self.find(*child, next, rest, depth + 1) {
                Found::Nowhere => Found::Here(*child),
                found => found,
            };
        }
        match scope.names.get(name) {
            Some(None) => return Found::Here(module),
            Some(Some(import)) => {
                let whole: Vec<String> = import.iter().chain(rest).cloned().collect();
                return self.resolve(module, &whole, depth + 1).map_or(Found::Elsewhere, Found::Here);
            }
            None if depth > DEPTH_MAX => return Found::Elsewhere,
            None => {}
        }
        for glob in &scope.globs {
            let Some(target) = self.resolve(module, glob, depth + 1).filter(|target| *target != module) else {
                continue;
            };
            match self.find(target, name, path, depth + 1) {
                Found::Nowhere => {}
                found => return found,
            }
        }
        Found::Nowhere
    }

    fn root(&self, mut module: usize) -> usize {
        while let Some(parent) = self.all[module].parent {
            module = parent;
        }
        module
    }

    /// Whether a file does nothing but declare modules and re-export.
    fn is_facade(&self, file: &Path) -> bool {
        let items = self.tree.sources.get(file).and_then(|source| source.syntax.as_ref()).map(|syntax| &syntax.items);
        let is_plain = |item: &Item| match item {
            Item::Mod(module) => module.content.is_none() || paths::is_test(&module.attrs),
            Item::Use(_) | Item::ExternCrate(_) => true,
            item => paths::is_test(paths::attributes(item)),
        };
        items.is_some_and(|items| items.iter().all(is_plain))
    }
}

enum Found {
    /// In this module.
    Here(usize),
    /// In another crate.
    Elsewhere,
    Nowhere,
}

/// The folder of the modules that a file declares.
fn room(file: &Path) -> PathBuf {
    let is_index = ["mod.rs", "lib.rs", "main.rs"].iter().any(|name| file.ends_with(name));
    if is_index { file.parent().unwrap_or(file).to_owned() } else { file.with_extension("") }
}

fn path_attribute(attribute: &syn::Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    match &pair.value {
        Expr::Lit(literal) if pair.path.is_ident("path") => match &literal.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

/// The name that an item has in its module.
fn defined(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}
