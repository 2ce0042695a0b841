//! The four slots: what is asked, what is answered, and the bounds an answer must keep.

pub mod grace;
pub mod presence;
pub mod settle;
pub mod target;

use crate::contract::{CONTRACT_VERSION, Info, Moment, PolicyError, SPAN_MAX_MS};
use crate::sandbox::Sandbox;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use wasmtime::Store;
use wasmtime::component::InstancePre;

/// The name of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlotName {
    /// Which daemon gets the call.
    Target,
    /// How long a call waits for a daemon.
    Grace,
    /// Whether a call in flight is given up.
    Presence,
    /// Which socket holds a device's session.
    Settle,
}

impl SlotName {
    /// All slots.
    pub const ALL: [Self; 4] = [Self::Target, Self::Grace, Self::Presence, Self::Settle];

    /// The name in settings, metrics and the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Grace => "grace",
            Self::Presence => "presence",
            Self::Settle => "settle",
        }
    }

    /// The interface that a policy for this slot exports.
    pub(crate) fn interface(self) -> String {
        format!("pointwork:policy/{self}@{CONTRACT_VERSION}")
    }

    /// The world of a policy for this slot, for messages.
    pub(crate) fn world(self) -> String {
        format!("a {self}-policy of pointwork:policy@{CONTRACT_VERSION}")
    }
}

/// What is no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be one of target, grace, presence, settle")]
pub struct NoSlot;

impl FromStr for SlotName {
    type Err = NoSlot;

    fn from_str(text: &str) -> Result<Self, NoSlot> {
        Self::ALL.into_iter().find(|slot| slot.as_str() == text).ok_or(NoSlot)
    }
}

impl fmt::Display for SlotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One slot, as a type: [`Target`](target::Target), [`Grace`](grace::Grace), [`Presence`](presence::Presence) or
/// [`Settle`](settle::Settle). The hidden items tie it to its generated bindings; nothing outside this crate can
/// implement it.
pub trait Slot: Send + Sync + Sized + 'static {
    /// Its name.
    const NAME: SlotName;
    /// All that the contract's function takes.
    type Question: Send + Sync;
    /// What it answers.
    type Verdict: Clone + PartialEq + fmt::Debug + Send;

    /// The moment of the decision: the guest's only clock and randomness.
    fn moment(question: &Self::Question) -> &Moment;

    /// Whether the verdict keeps the contract's bounds; the error says which it does not.
    fn check(question: &Self::Question, verdict: &Self::Verdict) -> Result<(), String>;

    #[doc(hidden)]
    type Linked: Send + Sync;
    #[doc(hidden)]
    type Guest: Send;
    #[doc(hidden)]
    fn link(pre: InstancePre<Sandbox>) -> wasmtime::Result<Self::Linked>;
    #[doc(hidden)]
    fn instantiate(linked: &Self::Linked, store: &mut Store<Sandbox>) -> wasmtime::Result<Self::Guest>;
    #[doc(hidden)]
    fn describe(guest: &Self::Guest, store: &mut Store<Sandbox>) -> wasmtime::Result<Info>;
    #[doc(hidden)]
    fn configure(guest: &Self::Guest, store: &mut Store<Sandbox>, json: &str) -> wasmtime::Result<Result<(), String>>;
    #[doc(hidden)]
    fn ask(
        guest: &Self::Guest,
        store: &mut Store<Sandbox>,
        question: &Self::Question,
    ) -> wasmtime::Result<Result<Self::Verdict, PolicyError>>;
}

/// The part of [`Slot`] that is the same in each slot but for the generated types.
macro_rules! bind {
    ($world:ident, $linked:ident, $guest:ident) => {
        type Linked = crate::bindings::$world::$linked<crate::sandbox::Sandbox>;
        type Guest = crate::bindings::$world::$guest;

        fn link(pre: wasmtime::component::InstancePre<crate::sandbox::Sandbox>) -> wasmtime::Result<Self::Linked> {
            Self::Linked::new(pre)
        }

        fn instantiate(
            linked: &Self::Linked,
            store: &mut wasmtime::Store<crate::sandbox::Sandbox>,
        ) -> wasmtime::Result<Self::Guest> {
            linked.instantiate(store)
        }

        fn describe(
            guest: &Self::Guest,
            store: &mut wasmtime::Store<crate::sandbox::Sandbox>,
        ) -> wasmtime::Result<crate::contract::Info> {
            let info = guest.pointwork_policy_meta().call_describe(store)?;
            Ok(crate::contract::Info { name: info.name, version: info.version, summary: info.summary })
        }

        fn configure(
            guest: &Self::Guest,
            store: &mut wasmtime::Store<crate::sandbox::Sandbox>,
            json: &str,
        ) -> wasmtime::Result<Result<(), String>> {
            guest.pointwork_policy_meta().call_configure(store, json)
        }
    };
}
use bind;

/// A span in a verdict is at most an hour: longer ones are rather an overflow than a wish.
fn check_span(what: &str, span_ms: u32) -> Result<(), String> {
    if span_ms > SPAN_MAX_MS {
        return Err(format!("{what} {span_ms} ms, more than {SPAN_MAX_MS} allowed"));
    }
    Ok(())
}
