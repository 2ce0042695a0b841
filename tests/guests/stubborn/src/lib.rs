//! A settle policy for tests of experiments: `{"mode": "refuse"}` refuses whoever comes while somebody is there, `{"mode": "trap"}`
//! fails, `{"mode": "trap-rarely"}` fails for one device in a thousand and accepts all others, and `{"mode": "key"}` tells the key of the device by how long it refuses.

use pointwork_policy_sdk::settle::{Event, Incumbent, Newcomer, Settle, Verdict};
use pointwork_policy_sdk::{Moment, PolicyError};
use serde::Deserialize;

/// For how long it refuses, in milliseconds.
const REFUSE_MS: u32 = 200;

/// The configuration.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    mode: Mode,
}

/// What it does.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    /// Refuses.
    #[default]
    Refuse,
    /// Executes an `unreachable`.
    Trap,
    /// As [`Mode::Trap`] for devices whose key is divisible by 1,000; accepts all others.
    TrapRarely,
    /// Refuses for one more millisecond than the key modulo a million.
    Key,
}

/// The policy.
pub struct Stubborn(Mode);

impl Settle for Stubborn {
    type Config = Config;

    fn configure(config: Config) -> Result<Self, String> {
        Ok(Self(config.mode))
    }

    fn decide(&self, at: &Moment, _: u32, _: &Incumbent, _: &Newcomer, _: &[Event]) -> Result<Verdict, PolicyError> {
        match self.0 {
            Mode::Refuse => Ok(Verdict::Refuse(REFUSE_MS)),
            // A bare `unreachable` on this target; it prints nothing.
            Mode::Trap => std::process::abort(),
            Mode::TrapRarely if at.key.is_multiple_of(1_000) => std::process::abort(),
            Mode::TrapRarely => Ok(Verdict::Accept),
            Mode::Key => Ok(Verdict::Refuse((at.key % 1_000_000) as u32 + 1)),
        }
    }
}

pointwork_policy_sdk::export_settle!(Stubborn);
