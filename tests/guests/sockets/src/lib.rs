//! Asks a server on the network for its choice.

use std::io::Read;
use std::net::TcpStream;

use pointwork_policy_sdk::target::{Candidate, Choice, Target};
use pointwork_policy_sdk::{Call, Moment, NoConfig, PolicyError};

/// The policy.
pub struct Sockets;

impl Target for Sockets {
    type Config = NoConfig;

    fn configure(_: NoConfig) -> Result<Self, String> {
        Ok(Self)
    }

    fn choose(&self, _: &Moment, _: &Call, _: &[Candidate]) -> Result<Choice, PolicyError> {
        let mut answer = [0];
        TcpStream::connect(("127.0.0.1", 6379))
            .and_then(|mut server| server.read_exact(&mut answer))
            .map_err(|error| PolicyError::Internal(error.to_string()))?;
        Ok(Choice::Pick(answer[0].into()))
    }
}

pointwork_policy_sdk::export_target!(Sockets);
