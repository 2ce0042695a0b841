//! Names the users and their methods. There are few, so that clients meet.

use std::sync::Arc;

pub(crate) const USERS: usize = 2;
pub(crate) const METHODS: usize = 4;
pub(crate) const USER_NAMES: [&str; USERS] = ["ada", "ben"];
pub(crate) const METHOD_NAMES: [&str; METHODS] = ["bash", "edit", "list", "read"];
pub(crate) const ROOMS: usize = USERS * METHODS;

/// A method of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Room(pub(crate) usize);

impl Room {
    pub(crate) fn new(user: usize, method: usize) -> Room {
        Room(user * METHODS + method)
    }

    pub(crate) fn user(self) -> usize {
        self.0 / METHODS
    }

    pub(crate) fn method(self) -> usize {
        self.0 % METHODS
    }

    /// Its bit in a set of rooms.
    pub(crate) fn bit(self) -> u8 {
        1 << self.0
    }
}

/// The names as the machines take them.
pub(crate) struct RoomNames {
    pub(crate) users: [Arc<str>; USERS],
    pub(crate) methods: [Arc<str>; METHODS],
}

impl RoomNames {
    pub(crate) fn new() -> RoomNames {
        RoomNames { users: USER_NAMES.map(Arc::from), methods: METHOD_NAMES.map(Arc::from) }
    }

    /// The names of a room's user and method.
    pub(crate) fn of(&self, room: Room) -> (Arc<str>, Arc<str>) {
        (self.users[room.user()].clone(), self.methods[room.method()].clone())
    }

    pub(crate) fn room(&self, user: &str, method: &str) -> Room {
        let index = |names: &[Arc<str>], name: &str| names.iter().position(|known| **known == *name).unwrap_or(0);
        Room::new(index(&self.users, user), index(&self.methods, method))
    }
}
