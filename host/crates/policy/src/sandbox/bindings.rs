//! Generates the host side of the interfaces that a guest may import (`wit/sandbox.wit`).

#![allow(missing_docs, unreachable_pub, clippy::all)]

wasmtime::component::bindgen!({
    path: "wit/sandbox.wit",
    world: "sandbox",
    imports: { default: trappable },
});
