//! The trait that ties a slot's question and verdict to its generated bindings.

use super::info::Info;
use super::slot_name::SlotName;
use super::{Moment, PolicyError};
use crate::sandbox::Sandbox;
use std::fmt;
use wasmtime::Store;
use wasmtime::component::InstancePre;

/// One slot, as a type: [`Target`](crate::Target), [`Grace`](crate::Grace), [`Presence`](crate::Presence) or
/// [`Settle`](crate::Settle). The hidden items tie it to its generated bindings; nothing outside this crate can
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
        type Linked = crate::contract::bindings::$world::$linked<crate::sandbox::Sandbox>;
        type Guest = crate::contract::bindings::$world::$guest;

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
pub(crate) use bind;
