//! Collects the paths that a Rust module names, in imports, in code and within macros, without those for tests.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, Meta, UseTree};

/// A path with the line that names it.
pub(super) struct Named {
    pub(super) segments: Vec<String>,
    pub(super) line: usize,
}

/// A `use`: the path, and the name that it gets here; `None` for a glob.
pub(super) struct Import {
    pub(super) path: Named,
    pub(super) name: Option<String>,
}

/// Whether an item is for tests alone.
pub(super) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => list.parse_args::<Meta>().is_ok_and(|meta| needs_test(&meta)),
        meta => meta.path().is_ident("test"),
    })
}

fn needs_test(meta: &Meta) -> bool {
    match meta {
        Meta::List(list) if list.path.is_ident("all") => list
            .parse_args_with(syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated)
            .is_ok_and(|parts| parts.iter().any(needs_test)),
        meta => meta.path().is_ident("test"),
    }
}

/// All imports that a `use` means.
pub(super) fn imports(item: &syn::ItemUse) -> Vec<Import> {
    let mut imports = Vec::new();
    flatten(&item.tree, &mut Vec::new(), &mut imports);
    imports
}

fn flatten(tree: &UseTree, prefix: &mut Vec<String>, imports: &mut Vec<Import>) {
    let mut import = |mut segments: Vec<String>, last: &syn::Ident, name: Option<String>| {
        if last == "self" && !segments.is_empty() {
            let name = name.or_else(|| segments.last().cloned());
            imports.push(Import { path: Named { segments, line: last.span().start().line }, name });
        } else {
            segments.push(last.to_string());
            let name = name.unwrap_or_else(|| last.to_string());
            imports.push(Import { path: Named { segments, line: last.span().start().line }, name: Some(name) });
        }
    };
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            flatten(&path.tree, prefix, imports);
            prefix.pop();
        }
        UseTree::Name(name) => import(prefix.clone(), &name.ident, None),
        UseTree::Rename(rename) => import(prefix.clone(), &rename.ident, Some(rename.rename.to_string())),
        UseTree::Glob(glob) => {
            let line = glob.star_token.spans[0].start().line;
            imports.push(Import { path: Named { segments: prefix.clone(), line }, name: None });
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, prefix, imports)),
    }
}

/// The paths in an item of a module, except what modules within it name.
pub(super) fn named(item: &Item) -> Vec<Named> {
    let mut paths = Paths(Vec::new());
    paths.visit_item(item);
    paths.0
}

struct Paths(Vec<Named>);

impl Paths {
    fn add(&mut self, segments: Vec<String>, line: usize) {
        // A single name is a local one, or is named by an import.
        if segments.len() > 1 {
            self.0.push(Named { segments, line });
        }
    }

    /// Paths among the tokens of a macro.
    fn scan(&mut self, tokens: TokenStream) {
        let mut path: (Vec<String>, usize) = (Vec::new(), 0);
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) if colons == 2 && !path.0.is_empty() => path.0.push(ident.to_string()),
                TokenTree::Ident(ident) => {
                    self.add(std::mem::take(&mut path.0), path.1);
                    path = (vec![ident.to_string()], ident.span().start().line);
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' && colons < 2 && !path.0.is_empty() => {
                    colons += 1;
                    continue;
                }
                token => {
                    self.add(std::mem::take(&mut path.0), path.1);
                    if let TokenTree::Group(group) = token {
                        self.scan(group.stream());
                    }
                }
            }
            colons = 0;
        }
        self.add(path.0, path.1);
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.0.extend(imports(item).into_iter().map(|import| import.path));
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_test(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let (None, Some(first)) = (&path.leading_colon, path.segments.first()) {
            let line = first.ident.span().start().line;
            self.add(path.segments.iter().map(|segment| segment.ident.to_string()).collect(), line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.scan(call.tokens.clone());
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
}

/// The attributes of an item that can hold code.
pub(super) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
