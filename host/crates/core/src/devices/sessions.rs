//! Decides which socket holds each device's session: the machine of one replica for all its devices.
//!
//! ```text
//! register ─ flap limiter ─ token ─ reconnect throttle ─ queue of the device ─ Read
//!    Read ─ nobody has it, or one that is gone ───────────────────────────── Swap (accept)
//!      └─ somebody has it ─ (AskOwner) ─ AskSettle ─ accept, beside ───────── Swap (accept)
//!                                            └─ refuse ─────────────────────── Swap (refuse)
//!    Swap ─ won ─ Registered, and the old holder is evicted; or Throttled
//!      ├─ lost ─ Read again, a few times at most
//!      └─ the store is away ─ decided by what is known here, and compared with the record when it is back
//! ```
//!
//! Each decision is one compare-and-set of the device's record, even a refusal: it holds for exactly the holder that it was
//! made about. A replica decides the registers of one device one at a time. Between them it *reconciles* the device. It reads
//! the record and brings it in line with what is true here: the holder left, registered again, gives no heartbeat, or was
//! accepted while the store was away. It also brings the holder in line with the record: another socket has the session.
//!
//! The host calls a `handle_*` under a lock, drains [`DeviceSessions::next_command`], unlocks and carries the commands out. Every
//! handler first does what was due at its moment. The machine does not know whether there is a cluster: without one, the
//! host answers `Read` and `Swap` from a map of its own.
//!
//! # Invariants
//!
//! - **one-holder**: at most one socket of a device is authoritative in the whole cluster: the one that the record names. A
//!   replica takes a socket for the holder only after it won the compare-and-set that says so. It closes a holder in favour of
//!   another socket only after that one's compare-and-set was won. While the store is away, it takes no second holder beside
//!   one that it knows of.
//! - **not-stranded**: once things are quiet, a device with a socket that is registered or registers has a holder. No newcomer
//!   is refused in favour of a socket that is proven gone, whatever a policy says.
//! - **refusal-is-harmless**: a refusal changes nothing of the holder.
//! - **no-false-offline**: a device is reported offline only while its record names nobody, or its holder gives no heartbeat.
//!   The end of a socket that was refused or evicted starts no debounce.
//! - **debounced**: a device that nobody holds is reported offline no sooner than the debounce after its last holder left. A
//!   socket that comes back and leaves again, at any replica, starts the debounce anew.
//! - **epoch-grows**: every change of a record gives it a greater epoch.
//! - **order-of-gates**: flap limiter, token, reconnect throttle, settle, evict. What one gate refuses, the next never sees.
//! - **every-register-answered**: each register gets exactly one `Registered`, `Throttled` or `AuthError`, unless its socket left.
//!   A register that comes while the same socket's last one is being decided counts as that one.
//! - **nothing-left**: when the last socket left and the store is there, only entries of the limiters remain. They are bounded
//!   and expire.

mod admission;
mod decide;
mod evictions;
mod jobs;
mod outcome;
mod reconcile;
mod socket_events;
mod state;
mod store_away;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use self::state::{DeviceSocket, DeviceState, Eviction, StoreState, TimerOwner};
use super::command::DeviceCommand;
use super::limiter::Limiter;
use super::registration::Moment;
use super::settings::DeviceSettings;
use super::throttle::{LoadBand, Throttle};
use crate::ids::SocketId;
use crate::time::Time;

/// How often one register or reconciliation reads the record anew because its compare-and-set was lost.
pub const SWAPS_MAX: u32 = 4;
/// When a register may come back whose turn did not come, or under which the record changed every time, in milliseconds.
pub const SHORT_RETRY_MS: u32 = 500;

/// The sessions of one replica.
#[derive(Debug)]
pub struct DeviceSessions {
    /// The replica's uid.
    replica: Arc<str>,
    settings: DeviceSettings,
    /// The latest moment it was told.
    now: Time,
    unix_ms: u64,
    band: LoadBand,
    limiter: Limiter,
    throttle: Throttle,
    sockets: HashMap<SocketId, DeviceSocket>,
    devices: BTreeMap<Arc<str>, DeviceState>,
    /// Evictions at other replicas that are not confirmed, by device and epoch.
    evictions: BTreeMap<(Arc<str>, u64), Eviction>,
    store: StoreState,
    timers: BTreeSet<(Time, TimerOwner)>,
    last_register: u64,
    last_op: u64,
    commands: VecDeque<DeviceCommand>,
}

/// How much there is of everything, for gauges and for the proof that nothing is left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceLoad {
    /// Sockets, those included that are told to close.
    pub sockets: usize,
    /// Devices that this replica has to do with.
    pub devices: usize,
    /// Of these, devices whose session a socket of this replica holds.
    pub holders: usize,
    /// Registers that wait for their turn.
    pub queued: usize,
    /// Devices with a question or store operation under way.
    pub working: usize,
    /// Devices whose record is to be compared with the store when it is back.
    pub unsure: usize,
    /// Evictions that are not confirmed.
    pub evictions: usize,
    /// Timers.
    pub timers: usize,
    /// Keys that the flap limiter remembers.
    pub limited_keys: usize,
    /// Devices that the reconnect throttle remembers.
    pub throttled_devices: usize,
}

/// The socket of this replica that holds a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalHolder {
    /// The socket.
    pub socket: SocketId,
    /// The epoch of its holding.
    pub epoch: u64,
    /// The store said so; else it was accepted while the store was away.
    pub is_sure: bool,
}

impl DeviceSessions {
    /// The sessions of a replica, of which there are none yet. `replica` is its uid, never used by another process.
    pub fn new(replica: Arc<str>, settings: DeviceSettings) -> DeviceSessions {
        DeviceSessions {
            replica,
            settings,
            now: Time::ZERO,
            unix_ms: 0,
            band: LoadBand::default(),
            limiter: Limiter::new(settings.limiter),
            throttle: Throttle::new(settings.throttle),
            sockets: HashMap::new(),
            devices: BTreeMap::new(),
            evictions: BTreeMap::new(),
            store: StoreState::default(),
            timers: BTreeSet::new(),
            last_register: 0,
            last_op: 0,
            commands: VecDeque::new(),
        }
    }

    /// Does what is due. To be called when [`DeviceSessions::poll_timeout`] says so; at any other time it does no harm.
    pub fn handle_timeout(&mut self, at: Moment) {
        self.advance(at);
        self.limiter.forget_old(self.now);
        self.throttle.forget_old(self.now);
    }

    /// How loaded the replica is, as of now.
    pub fn handle_load(&mut self, band: LoadBand) {
        self.band = band;
    }

    /// When [`DeviceSessions::handle_timeout`] is to be called next; `None` if there is nothing to do and nothing to forget.
    pub fn poll_timeout(&self) -> Option<Time> {
        let timer = self.timers.first().map(|(at, _)| *at);
        [timer, self.limiter.next_expiry(), self.throttle.next_expiry()].into_iter().flatten().min()
    }

    /// The next thing to do, in the order it came up.
    pub fn next_command(&mut self) -> Option<DeviceCommand> {
        self.commands.pop_front()
    }

    /// The flap limiter.
    pub fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    /// The socket of this replica that holds a device's session, as far as this replica knows.
    pub fn holder(&self, device: &str) -> Option<LocalHolder> {
        let local = self.devices.get(device)?.holder.as_ref()?;
        Some(LocalHolder { socket: local.socket, epoch: local.epoch, is_sure: local.is_sure })
    }

    /// How much there is of everything; looks at every device.
    pub fn load(&self) -> DeviceLoad {
        let count = |is_one: fn(&DeviceState) -> bool| self.devices.values().filter(|device| is_one(device)).count();
        DeviceLoad {
            sockets: self.sockets.len(),
            devices: self.devices.len(),
            holders: count(|device| device.holder.is_some()),
            queued: self.devices.values().map(|device| device.queue.len()).sum(),
            working: count(|device| device.job.is_some()),
            unsure: self.store.unsure.len() + self.store.reconciling.len(),
            evictions: self.evictions.len(),
            timers: self.timers.len(),
            limited_keys: self.limiter.keys(),
            throttled_devices: self.throttle.devices(),
        }
    }
}
