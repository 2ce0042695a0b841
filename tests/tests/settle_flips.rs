//! A client that opens a socket every time just after the settle window has passed, for ten simulated minutes: how often the device's
//! session goes to another socket, by the seed's rule and by the adaptive policy.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

use std::sync::Arc;
use std::time::Duration;

use pointwork::{
    config::{Bounded, PolicyConfig, RpcConfig},
    policies::slots::Policies,
};
use pointwork_core::devices::{
    Credentials, DeviceCommand, DeviceRecord, DeviceSessions, DeviceSettings, LimiterKey, Moment, Proof, Registration,
    SwapResult,
};
use pointwork_core::{SocketId, Time, decisions::Departure};
use pointwork_policy::SlotName;
use pointwork_tests::built;

const DEVICE: &str = "d";
/// A moment of this century, in milliseconds since 1970.
const BEGAN_MS: u64 = 1_800_000_000_000;

/// One replica that is alone, and its store.
struct Desk {
    sessions: DeviceSessions,
    record: DeviceRecord,
    policies: Policies,
    now_ms: u64,
}

impl Desk {
    fn new(policy: &str) -> Self {
        let mut settings = PolicyConfig::default();
        settings.settle.deadline_ms = Bounded::literal::<1_000>();
        let policies = Policies::new(&settings, &RpcConfig::default()).unwrap();
        policies.load(SlotName::Settle, &built::policy(policy).unwrap(), "{}");
        assert_eq!(policies.status()[3].source, "wasm");
        // The limiters are not what is asked about.
        let mut devices = DeviceSettings::default();
        (devices.limiter.rate_max, devices.throttle.base_max, devices.throttle.hard_ceiling) = (10_000, 1_000, 1_000);
        Self {
            sessions: DeviceSessions::new("r".into(), devices),
            record: DeviceRecord::default(),
            policies,
            now_ms: 0,
        }
    }

    fn moment(&self) -> Moment {
        Moment { now: Time::from_millis(self.now_ms), unix_ms: BEGAN_MS + self.now_ms }
    }

    fn pass_to(&mut self, at_ms: u64) {
        while self.now_ms < at_ms {
            self.now_ms += 100;
            self.sessions.handle_timeout(self.moment());
            if let Some(holder) = self.sessions.holder(DEVICE).filter(|_| self.now_ms.is_multiple_of(1_000)) {
                self.sessions.handle_heartbeat(holder.socket, &DEVICE.into(), self.moment());
            }
            self.carry_out();
        }
    }

    fn open(&mut self, socket: u128) {
        let at = self.moment();
        let socket = SocketId(socket);
        self.sessions.handle_open(socket, at).unwrap();
        let registration = Registration {
            device: Some(DEVICE.into()),
            key: LimiterKey::Device(DEVICE.into()),
            credentials: Credentials::Token,
            fingerprint: Some(7),
            address: None,
            is_polling: false,
        };
        self.sessions.handle_register(socket, registration, at);
        self.carry_out();
    }

    fn carry_out(&mut self) {
        while let Some(command) = self.sessions.next_command() {
            let at = self.moment();
            let device: Arc<str> = DEVICE.into();
            match command {
                DeviceCommand::CheckToken { socket, register } => {
                    let proof = Proof::Good { device, owner: None, pairing_code: None };
                    self.sessions.handle_proof(socket, register, proof, at);
                }
                DeviceCommand::Read { op, .. } => {
                    self.sessions.handle_read(&device, op, Ok(self.record.clone()), at);
                }
                DeviceCommand::Swap { op, expected, record, .. } => {
                    let is_won = self.record.epoch == expected;
                    if is_won {
                        self.record = *record;
                    }
                    let swapped = if is_won { SwapResult::Won } else { SwapResult::Lost };
                    self.sessions.handle_swapped(&device, op, swapped, at);
                }
                DeviceCommand::AskSettle { op, window_ms, incumbent, newcomer, history, .. } => {
                    let verdict = self.policies.settle(1, window_ms, &incumbent, &newcomer, &history);
                    self.sessions.handle_verdict(&device, op, verdict, None, at);
                }
                DeviceCommand::Close { socket, .. } => self.sessions.handle_close(socket, Departure::Evicted, at),
                DeviceCommand::AuthError { error, .. } => panic!("{error}"),
                DeviceCommand::AskOwner { .. } | DeviceCommand::EvictRemote { .. } => {
                    panic!("there is no other replica")
                }
                DeviceCommand::Registered { .. }
                | DeviceCommand::Throttled { .. }
                | DeviceCommand::HeartbeatRefused { .. }
                | DeviceCommand::Status { .. }
                | DeviceCommand::Event(_) => {}
            }
        }
    }
}

/// Opens and flips in ten minutes.
fn flips(policy: &str) -> (u64, u64) {
    let mut desk = Desk::new(policy);
    let spacing = Duration::from_millis(u64::from(DeviceSettings::default().settle_ms) + 100);
    let spacing_ms = u64::try_from(spacing.as_millis()).unwrap();
    let opens = 600_000 / spacing_ms;
    for open in 0..opens {
        desk.pass_to(40_000 + open * spacing_ms);
        desk.open(u128::from(open) + 1);
        assert!(desk.sessions.holder(DEVICE).is_some(), "never without one");
    }
    (opens, desk.record.flips)
}

#[test]
fn the_adaptive_policy_settles_a_client_that_opens_just_after_the_window() {
    let (opens, by_the_seed) = flips("settle-hold");
    let (_, adaptively) = flips("settle-adaptive");
    println!("{opens} opens in ten minutes: {by_the_seed} flips by settle-hold, {adaptively} by settle-adaptive");
    assert_eq!(by_the_seed, opens - 1);
    assert!(adaptively <= 3, "{adaptively} flips");
}
