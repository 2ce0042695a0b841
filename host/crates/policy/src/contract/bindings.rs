//! The types and calls that `bindgen!` generates from `wit/`: one module for each world, with synchronous calls.

#![allow(missing_docs, unreachable_pub, clippy::all)]

/// The records that all slots share, generated once.
pub mod shared {
    wasmtime::component::bindgen!({
        path: "../../../wit",
        inline: "package pointwork:shared; world shared { import pointwork:policy/types@0.1.0; }",
        world: "pointwork:shared/shared",
        additional_derives: [PartialEq],
    });
}

macro_rules! world {
    ($module:ident, $world:tt) => {
        pub mod $module {
            wasmtime::component::bindgen!({
                path: "../../../wit",
                world: $world,
                with: { "pointwork:policy/types": super::shared::pointwork::policy::types },
                additional_derives: [PartialEq],
            });
        }
    };
}

world!(target, "target-policy");
world!(grace, "grace-policy");
world!(presence, "presence-policy");
world!(settle, "settle-policy");
