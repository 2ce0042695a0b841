//! Inspects a policy file without loading it: what `pointwork policy check` prints.

use super::component::{CheckedComponent, check};
use super::digest::Digest;
use super::load_error::LoadError;
use super::prototype::Prototype;
use crate::contract::{Grace, Info, Presence, Settle, Slot, SlotName, Target};
use crate::engine::Engine;
use crate::sandbox::SlotLimits;
use serde::Serialize;

/// What a policy file is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Inspection {
    /// The slot that it is for, by what it exports.
    pub slot: SlotName,
    /// The policy's description of itself.
    #[serde(flatten)]
    pub info: Info,
    /// The interfaces that it imports.
    pub imports: Vec<String>,
    /// Size of the file.
    pub size_bytes: usize,
    /// Digest of the file alone (a generation's digest covers its configuration too).
    pub digest: Digest,
}

/// Checks a policy as a load does, up to its description; it is not configured.
///
/// # Errors
/// As for a load, but for the kinds about configuration.
pub fn inspect(engine: &Engine, wasm: &[u8]) -> Result<Inspection, LoadError> {
    let checked = check(engine, wasm)?;
    let digest = Digest::of_wasm(wasm);
    let info = match checked.slot {
        SlotName::Target => describe::<Target>(engine, &checked, digest),
        SlotName::Grace => describe::<Grace>(engine, &checked, digest),
        SlotName::Presence => describe::<Presence>(engine, &checked, digest),
        SlotName::Settle => describe::<Settle>(engine, &checked, digest),
    }?;
    Ok(Inspection { slot: checked.slot, info, imports: checked.imports, size_bytes: wasm.len(), digest })
}

fn describe<S: Slot>(engine: &Engine, checked: &CheckedComponent, digest: Digest) -> Result<Info, LoadError> {
    Ok(Prototype::<S>::new(engine, checked, digest, "", SlotLimits::default())?.info)
}
