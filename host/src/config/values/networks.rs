//! A list of networks.

use ipnet::IpNet;
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize, Serializer};
use std::net::IpAddr;

use super::text;

/// Networks as `address/bits`, or single addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks(Vec<IpNet>);

impl Networks {
    /// Whether one of them contains `address`. An IPv4-mapped IPv6 address counts as IPv4.
    #[must_use]
    pub fn hold(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Networks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(ToString::to_string))
    }
}

impl<'de> Deserialize<'de> for Networks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = text::list(deserializer, "networks")?.into_vec();
        given.iter().map(|text| network(text).map_err(D::Error::custom)).collect::<Result<_, _>>().map(Self)
    }
}

fn network(text: &str) -> Result<IpNet, String> {
    let single = text.parse::<IpAddr>().map(IpNet::from);
    let network = text.parse::<IpNet>().or(single);
    network.map_err(|_| format!("must be networks such as 10.0.0.0/8, not `{text}`"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn reads_networks_and_single_addresses() {
        let networks = |json: &str| serde_json::from_str::<Networks>(json);
        for given in [r#"["10.0.0.0/8","::1"]"#, r#""10.0.0.0/8, ::1""#] {
            let networks = networks(given).unwrap();
            for (address, is_held) in
                [("10.9.9.9", true), ("::ffff:10.1.1.1", true), ("11.0.0.1", false), ("::1", true), ("::2", false)]
            {
                assert_eq!(networks.hold(address.parse().unwrap()), is_held, "{address}");
            }
        }
        assert!(networks("[]").unwrap().is_empty());
        for wrong in [r#""""#, r#"["a"]"#, r#"["10.0.0.0/33"]"#, r#"["10.0.0/8"]"#, "3"] {
            assert!(networks(wrong).is_err(), "{wrong}");
        }
    }
}
