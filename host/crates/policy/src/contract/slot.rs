//! The trait of a slot: its question, its verdict, and how a guest is called.

use super::{Info, Moment, PolicyError, SlotName};
use crate::sandbox::Sandbox;
use std::fmt;
use wasmtime::Store;
use wasmtime::component::InstancePre;

/// One slot, as a type: [`Target`](crate::Target), [`Grace`](crate::Grace), [`Presence`](crate::Presence) or
/// [`Settle`](crate::Settle). The hidden items tie it to its generated bindings, so only this crate can implement it.
pub trait Slot: Send + Sync + Sized + 'static {
    /// The name of the slot.
    const NAME: SlotName;
    /// The arguments of the contract's function.
    type Question: Send + Sync;
    /// The result of the contract's function.
    type Verdict: Clone + PartialEq + fmt::Debug + Send;

    /// The moment of the decision: the guest's only clock and randomness.
    fn moment(question: &Self::Question) -> &Moment;

    /// Checks that a question keeps the contract's bounds; the error names the bound.
    fn check_question(question: &Self::Question) -> Result<(), String>;

    /// Checks that a verdict keeps the contract's bounds; the error names the bound.
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

/// Implements the part of [`Slot`] that differs between slots in the generated types and the final call only. The
/// module must name `Question`, a struct with the moment `at`, and the verdict's type.
macro_rules! bind {
    ($world:ident, $linked:ident, $guest:ident, |$instance:ident, $store:ident, $question:ident| $ask:expr) => {
        type Linked = $crate::contract::bindings::$world::$linked<$crate::sandbox::Sandbox>;
        type Guest = $crate::contract::bindings::$world::$guest;

        fn moment(question: &Self::Question) -> &$crate::contract::Moment {
            &question.at
        }

        fn link(pre: wasmtime::component::InstancePre<$crate::sandbox::Sandbox>) -> wasmtime::Result<Self::Linked> {
            Self::Linked::new(pre)
        }

        fn instantiate(
            linked: &Self::Linked,
            store: &mut wasmtime::Store<$crate::sandbox::Sandbox>,
        ) -> wasmtime::Result<Self::Guest> {
            linked.instantiate(store)
        }

        fn describe(
            guest: &Self::Guest,
            store: &mut wasmtime::Store<$crate::sandbox::Sandbox>,
        ) -> wasmtime::Result<$crate::contract::Info> {
            let info = guest.pointwork_policy_meta().call_describe(store)?;
            Ok($crate::contract::Info { name: info.name, version: info.version, summary: info.summary })
        }

        fn configure(
            guest: &Self::Guest,
            store: &mut wasmtime::Store<$crate::sandbox::Sandbox>,
            json: &str,
        ) -> wasmtime::Result<Result<(), String>> {
            guest.pointwork_policy_meta().call_configure(store, json)
        }

        fn ask(
            $instance: &Self::Guest,
            $store: &mut wasmtime::Store<$crate::sandbox::Sandbox>,
            $question: &Self::Question,
        ) -> wasmtime::Result<Result<Self::Verdict, $crate::contract::PolicyError>> {
            $ask
        }
    };
}
pub(super) use bind;
