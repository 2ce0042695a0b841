//! Names the guest's functions of a backtrace, for a policy's author.

use crate::text::bounded;
use rustc_demangle::demangle;
use wasmtime::WasmBacktrace;

const FRAMES_NAMED: usize = 6;
const FRAME_MAX_BYTES: usize = 96;

/// Functions between a panic and its trap. They tell the author nothing.
const PANIC_PATH: [&str; 5] = ["abort", "std::", "core::panicking::", "__rustc::", "alloc::alloc::handle_alloc_error"];

/// The innermost functions, innermost first; none if the guest has no name section.
pub(crate) fn function_names(backtrace: &WasmBacktrace) -> Vec<String> {
    shortened(backtrace.frames().iter().filter_map(|frame| frame.func_name()))
}

fn shortened<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    // The alternate form leaves the hash out.
    let mut names: Vec<String> = names.map(|name| format!("{:#}", demangle(name))).collect();
    names.dedup();
    let path = names
        .iter()
        .take_while(|name| PANIC_PATH.iter().any(|prefix| name.trim_start_matches('<').starts_with(prefix)))
        .count();
    let skipped = if path < names.len() { path } else { 0 };
    names.iter().skip(skipped).take(FRAMES_NAMED).map(|name| bounded(name, FRAME_MAX_BYTES)).collect()
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn leaves_out_the_functions_of_the_panic_itself() {
        let names = [
            "abort",
            "_ZN3std9panicking20rust_panic_with_hook17h0123456789abcdefE",
            "_ZN5guest3act17h0123456789abcdefE",
        ];
        assert_eq!(shortened(names.into_iter()), ["guest::act"]);
        assert_eq!(shortened(["abort"].into_iter()), ["abort"], "nothing else is known");
    }

    #[test]
    fn names_a_recursion_once() {
        assert_eq!(shortened(["deeper", "deeper", "deeper", "choose"].into_iter()), ["deeper", "choose"]);
    }
}
