//! Uses what std can take from its host beside output. All of it is granted by interfaces that any std guest imports, so
//! it cannot be refused at load: it must be harmless when called.

use std::collections::hash_map::RandomState;
use std::env;
use std::hash::BuildHasher;
use std::io::Read;
use std::process;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use pointwork_policy_sdk::target::{Candidate, Choice, Target};
use pointwork_policy_sdk::{Call, Moment, PolicyError};
use serde::Deserialize;

/// What the policy does in each decision.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Picks 0.
    #[default]
    Ok,
    /// Answers an error whose text holds all that it can learn: the clocks, randomness, environment and arguments. The
    /// same input must give the same text, in each instance and at any time.
    Learn,
    /// Sleeps for an hour, then picks 0: the host must not sleep with it.
    Sleep,
    /// Reads stdin to its end, which must come at once, then picks 0 if there was nothing.
    Stdin,
    /// Ends its process with status 0, as if all were well.
    Exit,
}

/// The configuration.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What to do.
    pub mode: Mode,
}

/// The policy.
pub struct Ambient(Mode);

impl Target for Ambient {
    type Config = Config;

    fn configure(config: Config) -> Result<Self, String> {
        Ok(Self(config.mode))
    }

    fn choose(&self, _: &Moment, _: &Call, _: &[Candidate]) -> Result<Choice, PolicyError> {
        match self.0 {
            Mode::Ok => {}
            Mode::Learn => return Err(PolicyError::Internal(all_that_can_be_learnt())),
            Mode::Sleep => thread::sleep(Duration::from_secs(3_600)),
            Mode::Stdin => {
                let read = std::io::stdin().read_to_end(&mut Vec::new());
                match read {
                    Ok(0) => {}
                    Ok(bytes) => return Err(PolicyError::Internal(format!("stdin gave {bytes} bytes"))),
                    Err(error) => return Err(PolicyError::Internal(format!("stdin: {error}"))),
                }
            }
            Mode::Exit => process::exit(0),
        }
        Ok(Choice::Pick(0))
    }
}

#[allow(clippy::disallowed_methods, reason = "asking for the time is what this guest is for")]
fn all_that_can_be_learnt() -> String {
    let random = RandomState::new().hash_one(0);
    let variables: Vec<_> = env::vars_os().collect();
    let arguments: Vec<_> = env::args_os().collect();
    format!("{:?} {:?} {random} {variables:?} {arguments:?}", SystemTime::now(), Instant::now())
}

pointwork_policy_sdk::export_target!(Ambient);
