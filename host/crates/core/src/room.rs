//! Builds the names of Socket.IO rooms.
//!
//! A user id may come from a token and contain anything, so `:` and `%` in it are escaped (`%3A`, `%25`). An ordinary
//! id gives the name that the seed and its Node replicas use. The last component stays as it is: nothing follows it,
//! so it can forge nothing. No two different (kind, user, tail) share a name.

use std::borrow::Cow;
use std::sync::Arc;

/// A method of a user: what the room `rpc:U:METHOD` is on the wire ([`rpc`]).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RpcRoom {
    /// The user.
    pub user: Arc<str>,
    /// The method.
    pub method: Arc<str>,
}

/// The room of the sockets that registered a method of a user: `rpc:U:METHOD`.
pub fn rpc(user: &str, method: &str) -> String {
    format!("rpc:{}:{method}", escaped(user))
}

/// The room of all sockets of a user: `user:U`.
pub fn user(user: &str) -> String {
    format!("user:{}", escaped(user))
}

/// The room of a user's apps (client type `user-scoped`): `user:U:user-scoped`.
pub fn user_scoped(user: &str) -> String {
    format!("user:{}:user-scoped", escaped(user))
}

/// The room of the sockets of one session of a user: `user:U:session:S`.
pub fn session(user: &str, session: &str) -> String {
    format!("user:{}:session:{session}", escaped(user))
}

/// The room of the sockets of one machine of a user: `user:U:machine:M`.
pub fn machine(user: &str, machine: &str) -> String {
    format!("user:{}:machine:{machine}", escaped(user))
}

fn escaped(id: &str) -> Cow<'_, str> {
    if !id.contains([':', '%']) {
        return Cow::Borrowed(id);
    }
    // `%` first, or the escapes of `:` would be escaped again.
    Cow::Owned(id.replace('%', "%25").replace(':', "%3A"))
}

#[cfg(test)]
#[allow(clippy::panic)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn ordinary_ids_give_the_seeds_names() {
        assert_eq!(rpc("u1", "bash"), "rpc:u1:bash");
        assert_eq!(user("u1"), "user:u1");
        assert_eq!(user_scoped("u1"), "user:u1:user-scoped");
        assert_eq!(session("u1", "s1"), "user:u1:session:s1");
        assert_eq!(machine("u1", "m1"), "user:u1:machine:m1");
    }

    #[test]
    fn the_user_is_escaped_and_the_tail_is_not() {
        assert_eq!(rpc("a:b", "c"), "rpc:a%3Ab:c");
        assert_eq!(rpc("a", "b:c"), "rpc:a:b:c");
        assert_eq!(rpc("a%3Ab", "c%:"), "rpc:a%253Ab:c%:");
        assert_eq!(user("x:user-scoped"), "user:x%3Auser-scoped");
    }

    /// Every string of up to two of these pieces and some longer ones, as user and as tail, in all five kinds.
    #[test]
    fn no_two_rooms_share_a_name() {
        let pieces = ["a", ":", "%", "3A", "25", "user-scoped", "session", "machine", "x"];
        let mut ids = vec![String::new()];
        let mut last = ids.clone();
        for _ in 0..2 {
            last = last.iter().flat_map(|id| pieces.map(|piece| format!("{id}{piece}"))).collect();
            ids.extend(last.iter().cloned());
        }
        ids.extend(
            [
                "a:b:c",
                "a%3Ab",
                "a%253Ab",
                "x:user-scoped",
                "x:session:y",
                "x:machine:y",
                "a:session:",
                ":session:",
                "%3Asession%3A",
                "é:ü",
            ]
            .map(String::from),
        );
        ids.sort();
        ids.dedup();

        let mut seen: BTreeMap<String, (u8, &str, &str)> = BTreeMap::new();
        let mut claim = |name: String, owner| {
            if let Some(other) = seen.insert(name.clone(), owner)
                && other != owner
            {
                panic!("{name} is the room of {owner:?} and of {other:?}");
            }
        };
        for id in &ids {
            claim(user(id), (0, id, ""));
            claim(user_scoped(id), (1, id, ""));
            for tail in &ids {
                claim(rpc(id, tail), (2, id, tail));
                claim(session(id, tail), (3, id, tail));
                claim(machine(id, tail), (4, id, tail));
            }
        }
        assert_eq!(seen.len(), 2 * ids.len() + 3 * ids.len() * ids.len());
    }
}
