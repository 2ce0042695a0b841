//! Measures files and functions, those of tests too.

use std::path::Path;

use syn::visit::{self, Visit};

use super::finding::{Finding, Rule};
use super::rules::Bounds;
use super::tree::{Tree, shown};

/// Files and functions that are longer than their bounds, and files that do not parse.
pub(super) fn check(tree: &Tree, bounds: &Bounds) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in &tree.sources {
        if let Some(error) = &source.error {
            findings.push(Finding::new(Rule::Syntax, shown(path), format!("cannot be parsed: {error}")));
        }
        let lines = source.text.lines().count();
        if lines > bounds.file_lines {
            let text =
                format!("has {lines} lines, the bound is {}: split it by what its parts are for", bounds.file_lines);
            findings.push(Finding::new(Rule::FileLines, shown(path), text));
        }
        if let Some(syntax) = &source.syntax {
            let mut functions = Functions { path, bound: bounds.function_lines, findings: &mut findings };
            functions.visit_file(syntax);
        }
    }
    findings
}

struct Functions<'a> {
    path: &'a Path,
    bound: usize,
    findings: &'a mut Vec<Finding>,
}

impl Functions<'_> {
    /// From the signature to the closing brace, without attributes and comments before it.
    fn measure(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let first = signature.ident.span().start().line;
        let lines = block.brace_token.span.close().end().line - first + 1;
        if lines > self.bound {
            let text = format!(
                "the function `{}` at line {first} has {lines} lines, the bound is {}: move its steps into functions with names",
                signature.ident, self.bound
            );
            self.findings.push(Finding::new(Rule::FunctionLines, shown(self.path), text));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.measure(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }
}
