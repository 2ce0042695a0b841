//! What `bindgen!` makes of the contract in `wit/`: one module per world, all without fibers (synchronous calls).
//!
//! The generated names follow the WIT tree; the rest of the crate sees them through `contract` and the modules of
//! the slots.

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

pub mod target {
    wasmtime::component::bindgen!({
        path: "../../../wit",
        world: "target-policy",
        with: { "pointwork:policy/types": super::shared::pointwork::policy::types },
        additional_derives: [PartialEq],
    });
}

pub mod grace {
    wasmtime::component::bindgen!({
        path: "../../../wit",
        world: "grace-policy",
        with: { "pointwork:policy/types": super::shared::pointwork::policy::types },
        additional_derives: [PartialEq],
    });
}

pub mod presence {
    wasmtime::component::bindgen!({
        path: "../../../wit",
        world: "presence-policy",
        with: { "pointwork:policy/types": super::shared::pointwork::policy::types },
        additional_derives: [PartialEq],
    });
}

pub mod settle {
    wasmtime::component::bindgen!({
        path: "../../../wit",
        world: "settle-policy",
        with: { "pointwork:policy/types": super::shared::pointwork::policy::types },
        additional_derives: [PartialEq],
    });
}
