//! Checks the bytes of a policy and compiles them: size, kind, imports, world. No guest code runs here.

use super::load_error::LoadError;
use crate::contract::{CONTRACT_VERSION, SlotName};
use crate::engine::Engine;
use crate::sandbox::wasi;
use crate::text::bounded;
use wasmtime::component::Component;

/// How large a policy may be: 16 MiB.
pub const WASM_MAX_BYTES: usize = 16 * 1024 * 1024;

const MESSAGE_MAX_BYTES: usize = 1024;
/// How many imports or exports a message names.
const NAMES_MAX: usize = 6;
const NAME_MAX_BYTES: usize = 128;

/// A component that may be instantiated in the sandbox.
pub(crate) struct CheckedComponent {
    pub(super) component: Component,
    pub(super) slot: SlotName,
    pub(super) imports: Vec<String>,
}

/// Checks what is known without compiling.
pub(crate) fn check_bytes(wasm: &[u8]) -> Result<(), LoadError> {
    if wasm.is_empty() {
        return Err(LoadError::Empty);
    }
    if wasm.len() > WASM_MAX_BYTES {
        return Err(LoadError::TooLarge { size_bytes: wasm.len(), limit_bytes: WASM_MAX_BYTES });
    }
    // After the magic come two bytes of version and two that tell a module (0) from a component (1).
    match wasm {
        [0, b'a', b's', b'm', _, _, 0, 0, ..] => Err(LoadError::CoreModule),
        [0, b'a', b's', b'm', ..] => Ok(()),
        _ => Err(LoadError::Malformed("it does not begin as wasm".into())),
    }
}

/// Compiles a policy and checks its imports and its world. Takes about 100 ms for 60 KB.
///
/// # Errors
/// All kinds of [`LoadError`] but those about linking, describing and configuring.
pub(super) fn check(engine: &Engine, wasm: &[u8]) -> Result<CheckedComponent, LoadError> {
    check_bytes(wasm)?;
    let component = Component::from_binary(engine.wasmtime(), wasm)
        .map_err(|error| LoadError::Malformed(bounded(&format!("{error:#}"), MESSAGE_MAX_BYTES)))?;
    let imports: Vec<String> =
        component.component_type().imports(engine.wasmtime()).map(|(name, _)| name.to_string()).collect();
    let forbidden: Vec<String> = imports
        .iter()
        .filter(|import| !wasi::is_allowed(import))
        .take(NAMES_MAX)
        .map(|import| bounded(import, NAME_MAX_BYTES))
        .collect();
    if !forbidden.is_empty() {
        return Err(LoadError::ForbiddenImport(forbidden));
    }
    let slot = find_slot(engine, &component)?;
    Ok(CheckedComponent { component, slot, imports })
}

/// As [`check`], for a policy of one slot.
pub(crate) fn check_for(slot: SlotName, engine: &Engine, wasm: &[u8]) -> Result<CheckedComponent, LoadError> {
    let checked = check(engine, wasm)?;
    if checked.slot != slot {
        return Err(LoadError::WrongWorld { found: checked.slot.world(), wanted: slot.world() });
    }
    Ok(checked)
}

/// The one slot whose world it exports; names are matched by compatible versions, as linking does.
fn find_slot(engine: &Engine, component: &Component) -> Result<SlotName, LoadError> {
    let exports = |interface: &str| component.get_export_index(None, interface).is_some();
    let has_meta = exports(&format!("pointwork:policy/meta@{CONTRACT_VERSION}"));
    let slots: Vec<SlotName> = SlotName::ALL.into_iter().filter(|slot| exports(&slot.interface())).collect();
    let found = match slots.as_slice() {
        [slot] if has_meta => return Ok(*slot),
        [slot] => format!("{} without its `meta` interface", slot.world()),
        [] => describe_exports(engine, component),
        _ => "a component with the interfaces of several slots".into(),
    };
    Err(LoadError::WrongWorld { found, wanted: format!("one world of pointwork:policy@{CONTRACT_VERSION}") })
}

fn describe_exports(engine: &Engine, component: &Component) -> String {
    let ty = component.component_type();
    let exports = ty.exports(engine.wasmtime()).take(NAMES_MAX);
    let names: Vec<String> = exports.map(|(name, _)| format!("`{}`", bounded(name, NAME_MAX_BYTES))).collect();
    if names.is_empty() {
        return "a component that exports nothing".into();
    }
    format!("a component that exports {}", names.join(", "))
}
