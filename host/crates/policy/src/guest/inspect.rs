//! A look at a policy file without loading it anywhere: what `pointwork policy check` prints.

use crate::contract::Info;
use crate::contract::grace::Grace;
use crate::contract::presence::Presence;
use crate::contract::settle::Settle;
use crate::contract::slot::Slot;
use crate::contract::slot_name::SlotName;
use crate::contract::target::Target;
use crate::engine::Engine;
use crate::guest::Digest;
use crate::guest::LoadError;
use crate::guest::component::{Checked, check};
use crate::guest::generation::{describe, link};
use crate::guest::log::GuestLog;
use crate::sandbox::SlotLimits;
use serde::Serialize;

/// What a policy file is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Inspection {
    /// The slot that it is for, by what it exports.
    pub slot: SlotName,
    /// What it says of itself.
    #[serde(flatten)]
    pub info: Info,
    /// The interfaces that it imports.
    pub imports: Vec<String>,
    /// Size of the file.
    pub size_bytes: usize,
    /// Digest of the file alone (a generation's digest covers its configuration too).
    pub digest: Digest,
}

/// Checks a policy as a load does, up to asking it what it is; it is not configured.
///
/// # Errors
/// As a load would, but for the kinds about configuration.
pub fn inspect(engine: &Engine, wasm: &[u8]) -> Result<Inspection, LoadError> {
    let checked = check(engine, wasm)?;
    let digest = Digest::of_wasm(wasm);
    let info = match checked.slot {
        SlotName::Target => ask::<Target>(engine, &checked, digest),
        SlotName::Grace => ask::<Grace>(engine, &checked, digest),
        SlotName::Presence => ask::<Presence>(engine, &checked, digest),
        SlotName::Settle => ask::<Settle>(engine, &checked, digest),
    }?;
    Ok(Inspection { slot: checked.slot, info, imports: checked.imports, size_bytes: wasm.len(), digest })
}

fn ask<S: Slot>(engine: &Engine, checked: &Checked, digest: Digest) -> Result<Info, LoadError> {
    let linked = link::<S>(engine, checked)?;
    let log = GuestLog::new(S::NAME, digest.short());
    describe::<S>(engine, &linked, &SlotLimits::default(), &log)
}
