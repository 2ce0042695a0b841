//! A target policy that misbehaves as its configuration says: `{"mode": "loop"}`.

use pointwork_policy_sdk::target::{Candidate, Choice, Target};
use pointwork_policy_sdk::{Call, Moment, PolicyError};

mod acts;
mod mode;

pub use mode::{Config, Mode};

/// The policy.
pub struct Hostile(Mode);

impl Target for Hostile {
    type Config = Config;

    fn configure(config: Config) -> Result<Self, String> {
        match config.mode {
            Mode::ConfigureLoop => acts::compute_for_ever(),
            Mode::ConfigureTrap => acts::trap(),
            Mode::ConfigureAllocate => {
                acts::allocate(4 << 20);
                Ok(Self(Mode::Ok))
            }
            Mode::ConfigureRefuse => Err("refuses every configuration".into()),
            mode => Ok(Self(mode)),
        }
    }

    fn choose(&self, at: &Moment, call: &Call, candidates: &[Candidate]) -> Result<Choice, PolicyError> {
        match self.0 {
            Mode::TrapRarely if at.key.is_multiple_of(1_000) => acts::trap(),
            Mode::Ok
            | Mode::TrapRarely
            | Mode::ConfigureLoop
            | Mode::ConfigureTrap
            | Mode::ConfigureAllocate
            | Mode::ConfigureRefuse => Ok(Choice::Pick(0)),
            Mode::Loop => acts::compute_for_ever(),
            Mode::Trap => acts::trap(),
            Mode::OutOfRange => Ok(Choice::Pick(candidates.len() as u32)),
            Mode::Allocate => acts::allocate_until_refused(),
            Mode::Recurse => Ok(Choice::Pick(acts::recurse())),
            Mode::RecurseShadow => Ok(Choice::Pick(acts::recurse_with_large_frames(0))),
            Mode::Print => acts::print(),
            Mode::Flood => acts::flood(),
            Mode::Panic => acts::panic_about(&call.method),
            Mode::Error => Err(PolicyError::BadInput("does not like this input".into())),
            Mode::ErrorLong => Err(PolicyError::Internal("long ".repeat((1 << 20) / 5))),
            Mode::Remember => Ok(acts::remember()),
            Mode::LongCopy => acts::copy_for_ever(),
        }
    }
}

pointwork_policy_sdk::export_target!(Hostile);
