//! The state of a socket, of a device, and of the job that is under way for a device.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::decisions::{Departure, Incumbent, Liveness};
use crate::devices::event::SessionReason;
use crate::devices::limiter::Admission;
use crate::devices::record::{DeviceRecord, Ended, Holder};
use crate::devices::registration::{OpId, RegisterId, Registration};
use crate::experiments::Exposure;
use crate::ids::SocketId;
use crate::time::Time;

/// A socket of this replica.
#[derive(Debug)]
pub(super) struct DeviceSocket {
    pub(super) stage: SocketStage,
    pub(super) last_packet: Time,
    /// Its timer.
    pub(super) wake: Option<Time>,
}

/// How far a socket is. The timer of a socket runs while it is fresh or proving.
#[derive(Debug)]
pub(super) enum SocketStage {
    Fresh,
    /// Its token is being checked.
    Proving {
        register: RegisterId,
        registration: Box<Registration>,
        admission: Admission,
    },
    /// Its register waits for its turn or is being decided.
    Queued {
        device: Arc<str>,
    },
    Holder {
        device: Arc<str>,
    },
    /// It held the session and is closed after a hand-over.
    Beside {
        device: Arc<str>,
    },
    /// It was told to close. Nothing that it sends counts any more.
    Ended,
}

/// What a register said and proved of its device.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    pub(super) has_proved: bool,
    pub(super) owner: Option<Arc<str>>,
    pub(super) pairing_code: Option<Arc<str>>,
    pub(super) fingerprint: Option<u64>,
    pub(super) address: Option<u64>,
    pub(super) is_polling: bool,
}

impl Claim {
    /// The record with what the claim adds to it.
    pub(super) fn applied_to(&self, record: &DeviceRecord) -> DeviceRecord {
        let mut record = record.clone();
        if self.has_proved && self.pairing_code.is_none() {
            // The code by which an operator paired it stands.
            record.pairing_code = record.pairing_code.take().filter(|_| record.is_paired);
            record.is_paired = true;
        }
        if !record.is_paired && self.pairing_code.is_some() {
            record.pairing_code = self.pairing_code.clone();
        }
        if self.owner.is_some() {
            record.owner = self.owner.clone();
        }
        record
    }
}

/// A register that passed the gates up to its device's queue.
#[derive(Debug)]
pub(super) struct PendingRegister {
    pub(super) socket: SocketId,
    pub(super) arrived: Time,
    pub(super) claim: Claim,
    pub(super) attempts: u32,
    /// The holder that it would have replaced, if the compare-and-set that is said to be lost was written all the same.
    pub(super) rival: Option<Holder>,
    /// It was evicted, before its acceptance was known here, in favour of a holding with this epoch; the greatest one.
    pub(super) evicted_by: u64,
    /// The arm that decided when `settle` was last asked.
    pub(super) exposure: Option<Box<Exposure>>,
}

/// A device that has a holder, a register or a job at this replica, or is to be reported offline by it.
#[derive(Debug, Default)]
pub(super) struct DeviceState {
    pub(super) holder: Option<HeldSession>,
    /// Oldest first.
    pub(super) queue: VecDeque<PendingRegister>,
    pub(super) job: Option<Box<Job>>,
    pub(super) is_reconcile_wanted: bool,
    /// The last job was a register, so reconciling comes first now.
    pub(super) is_reconciles_turn: bool,
    pub(super) retry_at: Option<Time>,
    pub(super) offline_at: Option<Time>,
    pub(super) is_offline_due: bool,
    /// A dead replica that the record may still name.
    pub(super) orphan_of: Option<Arc<str>>,
    /// The last holder that ended here.
    pub(super) ended: Option<LocalEnd>,
    /// The end of a holder at another replica that started the debounce here anew.
    pub(super) ended_since: Option<Ended>,
    /// The holder that a compare-and-set with an unknown result replaced. It is evicted once the result is known to be a success.
    pub(super) replaced: Option<Holder>,
    /// A compare-and-set that timed out may still reach the store, until the record has another epoch.
    pub(super) has_stray_swap: bool,
    /// Sockets that held the session and are closed after a hand-over, each with its moment.
    pub(super) beside: Vec<(Time, SocketId)>,
    /// The record as it was last read or written. While the store is away: as it would be.
    pub(super) known: DeviceRecord,
    /// The greatest epoch of a status that dashboards were told.
    pub(super) status_epoch: u64,
    /// Dashboards were told a status that no record has yet.
    pub(super) is_status_unsure: bool,
    /// Its timer.
    pub(super) wake: Option<Time>,
}

/// How a socket of this replica ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocalEnd {
    pub(super) socket: SocketId,
    pub(super) how: Departure,
    /// How long nothing had been heard of it.
    pub(super) silent_ms: u32,
}

/// The holder, a socket of this replica.
#[derive(Debug)]
pub(super) struct HeldSession {
    pub(super) socket: SocketId,
    pub(super) epoch: u64,
    pub(super) accepted: Time,
    pub(super) accepted_ms: u64,
    /// Its last heartbeat, or when it was accepted.
    pub(super) heartbeat: Time,
    pub(super) claim: Claim,
    /// It gives no heartbeat.
    pub(super) is_silent: bool,
    pub(super) is_sure: bool,
    /// It registered again, and the record is to say so.
    pub(super) is_refreshed: bool,
    pub(super) refresh_written: Time,
}

/// What is being done for a device. Boxed whole where it is kept: most devices have none.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) op: OpId,
    /// When the answer counts as failed.
    pub(super) deadline: Time,
    pub(super) work: JobPurpose,
    pub(super) step: JobStep,
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a job is boxed whole")]
pub(super) enum JobPurpose {
    Register(PendingRegister),
    Reconcile { attempts: u32 },
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a job is boxed whole")]
pub(super) enum JobStep {
    Reading,
    AskingOwner {
        record: DeviceRecord,
        holder: Holder,
    },
    AskingSettle {
        record: DeviceRecord,
        incumbent: Incumbent,
        /// Whose session it is; `None` while the store is away: the holder here.
        holder: Option<Holder>,
        /// It was proven gone meanwhile.
        is_gone: bool,
    },
    Swapping {
        before: DeviceRecord,
        record: DeviceRecord,
        plan: SwapPlan,
    },
}

/// What a compare-and-set is for.
#[derive(Debug)]
pub(super) enum SwapPlan {
    Take(Takeover),
    Refuse {
        retry_after_ms: u32,
        ask: OpId,
        incumbent: Incumbent,
        holder: Holder,
        is_gone: bool,
    },
    /// The record names the holder, whose status changed or who registered again.
    Touch {
        /// Dashboards are told, even if it did not change.
        is_news: bool,
    },
    /// The record did not name the holder here.
    Retake {
        rival: Option<Holder>,
    },
    /// The record names a socket that is gone.
    Release,
    Offline,
}

/// A newcomer gets the session.
#[derive(Debug)]
pub(super) struct Takeover {
    /// Who is to be evicted.
    pub(super) rival: Option<Holder>,
    pub(super) reason: SessionReason,
    pub(super) ask: Option<OpId>,
    pub(super) incumbent: Option<Incumbent>,
    /// After so many milliseconds.
    pub(super) beside_ms: u32,
}

impl Takeover {
    /// Whether it takes the session from a socket at another replica that is known to live.
    pub(super) fn is_from_another(&self) -> bool {
        let lives = |incumbent: Incumbent| !incumbent.local && incumbent.liveness == Liveness::Alive;
        self.rival.is_some() && self.incumbent.is_some_and(lives)
    }

    /// There is nobody to be evicted.
    pub(super) fn of(reason: SessionReason) -> Takeover {
        Takeover { rival: None, reason, ask: None, incumbent: None, beside_ms: 0 }
    }
}

/// An eviction at another replica that is not confirmed.
#[derive(Debug)]
pub(super) struct Eviction {
    pub(super) replica: Arc<str>,
    pub(super) socket: SocketId,
    pub(super) close_at: Time,
    pub(super) retry_at: Time,
    pub(super) retry: Duration,
}

/// What is known of the store.
#[derive(Debug, Default)]
pub(super) struct StoreState {
    pub(super) is_away: bool,
    /// When it is tried again.
    pub(super) probe_at: Time,
    /// When it was last found to be back, or said to be.
    pub(super) back_at: Option<Time>,
    /// Devices to be compared with it.
    pub(super) unsure: BTreeSet<Arc<str>>,
    /// Devices that are being compared with it.
    pub(super) reconciling: BTreeSet<Arc<str>>,
}

/// Whose timer it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TimerOwner {
    Socket(SocketId),
    Device(Arc<str>),
    Eviction(Arc<str>, u64),
    Store,
}
