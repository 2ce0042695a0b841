//! Names the PUB/SUB channels.

/// The two channels that a server subscribes to for one namespace.
///
/// Node counts the public channel's subscribers to know how many answers to expect, so a server subscribes to it exactly
/// once per namespace: one subscription too many and every request of a Node server times out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channels {
    /// `<prefix>#<nsp>#`: reaches every server.
    pub public: String,
    /// `<prefix>#<nsp>#<uid>#`: reaches this server alone.
    pub private: String,
}

impl Channels {
    /// The channels of the server `uid` in the namespace `nsp`.
    pub fn new(prefix: &str, nsp: &str, uid: &str) -> Self {
        Channels { public: Channels::public_of(prefix, nsp), private: Channels::private_of(prefix, nsp, uid) }
    }

    /// The public channel of a namespace: it reaches every server.
    pub fn public_of(prefix: &str, nsp: &str) -> String {
        format!("{prefix}#{nsp}#")
    }

    /// The private channel of any server. It carries the answers to that server, and requests that only that server must answer.
    pub fn private_of(prefix: &str, nsp: &str, uid: &str) -> String {
        format!("{prefix}#{nsp}#{uid}#")
    }

    /// The uid of the server that a private channel belongs to. For a public channel, a text that is not a uid.
    pub fn server_of(channel: &str) -> Option<&str> {
        channel.strip_suffix('#')?.rsplit('#').next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::CHANNEL_PREFIX;

    #[test]
    fn channel_names_equal_those_of_node() {
        let channels = Channels::new(CHANNEL_PREFIX, "/admin", "0000000000000001");
        assert_eq!(channels.public, "socket.io#/admin#");
        assert_eq!(channels.private, "socket.io#/admin#0000000000000001#");
        assert_eq!(Channels::server_of(&channels.private), Some("0000000000000001"));
        assert_eq!((Channels::server_of(&channels.public), Channels::server_of("x")), (Some("/admin"), None));
    }
}
