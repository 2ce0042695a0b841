//! The policy directory: the files in it are the policies that serve.
//!
//! Each slot has a module file and, beside it, an optional `<stem>.json` with its configuration. A file can be renamed, rewritten
//! in place, deleted, or replaced by a symlink of a Kubernetes ConfigMap. An event only says when to check the files. They are
//! loaded when they differ from those that were loaded and no longer change.

mod module_paths;
mod slot_files;
mod watch;
mod writers;

pub(crate) use self::module_paths::ModulePaths;
pub use self::watch::{PolicyDir, Reloads};
