//! The contract in Rust, generated from `wit/`.
//!
//! Each interface is generated once, in a world of its own. A policy's component is the union of the two worlds that
//! its `export_*!` macro exports, which makes one of the contract's four, and all slots share the same [`types`].
#![allow(unsafe_code, reason = "generated: the canonical ABI passes raw pointers")]
#![allow(missing_docs, unreachable_pub, reason = "generated: the contract documents itself")]
#![allow(clippy::all, reason = "generated")]

pub mod types {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package pointwork:sdk; world types { import pointwork:policy/types@0.1.0; }",
        world: "pointwork:sdk/types",
        additional_derives: [PartialEq, Eq],
        generate_unused_types: true,
        generate_all,
    });
    pub use self::pointwork::policy::types::*;
}

pub mod meta {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package pointwork:sdk; world meta { export pointwork:policy/meta@0.1.0; }",
        world: "pointwork:sdk/meta",
        pub_export_macro: true,
        generate_all,
    });
}

/// Generates the bindings of one slot's interface on top of the shared types.
macro_rules! slot {
    ($slot:ident, $inline:literal, $world:literal) => {
        pub mod $slot {
            wit_bindgen::generate!({
                path: "../../wit",
                inline: $inline,
                world: $world,
                with: { "pointwork:policy/types@0.1.0": crate::bindings::types },
                additional_derives: [PartialEq, Eq],
                pub_export_macro: true,
                generate_all,
            });
        }
    };
}

slot!(target, "package pointwork:sdk; world target { export pointwork:policy/target@0.1.0; }", "pointwork:sdk/target");
slot!(grace, "package pointwork:sdk; world grace { export pointwork:policy/grace@0.1.0; }", "pointwork:sdk/grace");
slot!(
    presence,
    "package pointwork:sdk; world presence { export pointwork:policy/presence@0.1.0; }",
    "pointwork:sdk/presence"
);
slot!(settle, "package pointwork:sdk; world settle { export pointwork:policy/settle@0.1.0; }", "pointwork:sdk/settle");
