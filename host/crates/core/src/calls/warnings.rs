//! Warns about each room at most once a minute.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use crate::room::RpcRoom;
use crate::time::Time;

/// How long a room is not warned about again.
const QUIET: Duration = Duration::from_secs(60);
/// Rooms warned about within a minute at most: beyond it the log says enough, and memory stays bounded.
const ROOMS_MAX: usize = 1_024;

#[derive(Debug, Default)]
pub(super) struct Warnings {
    recent: HashSet<RpcRoom>,
    /// The same rooms, oldest warning first.
    order: VecDeque<(Time, RpcRoom)>,
}

impl Warnings {
    /// Whether to warn about the room now; if so, it is quiet for a minute.
    pub(super) fn is_due(&mut self, room: &RpcRoom, now: Time) -> bool {
        self.forget_old(now);
        if self.order.len() >= ROOMS_MAX || self.recent.contains(room) {
            return false;
        }
        self.recent.insert(room.clone());
        self.order.push_back((now, room.clone()));
        true
    }

    pub(super) fn forget_old(&mut self, now: Time) {
        while let Some((at, room)) = self.order.front()
            && now.saturating_since(*at) >= QUIET
        {
            self.recent.remove(room);
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(method: &str) -> RpcRoom {
        RpcRoom { user: "u".into(), method: method.into() }
    }

    #[test]
    fn warns_once_a_minute_per_room() {
        let mut warnings = Warnings::default();
        assert!(warnings.is_due(&room("a"), Time::from_millis(0)));
        assert!(!warnings.is_due(&room("a"), Time::from_millis(59_999)));
        assert!(warnings.is_due(&room("b"), Time::from_millis(59_999)));
        assert!(warnings.is_due(&room("a"), Time::from_millis(60_000)));
        assert!(!warnings.is_due(&room("b"), Time::from_millis(60_000)));
    }

    #[test]
    fn bounds_and_forgets_warned_rooms() {
        let mut warnings = Warnings::default();
        for method in 0..ROOMS_MAX {
            assert!(warnings.is_due(&room(&method.to_string()), Time::ZERO));
        }
        assert!(!warnings.is_due(&room("one more"), Time::ZERO));
        warnings.forget_old(Time::from_millis(60_000));
        assert_eq!((warnings.order.len(), warnings.recent.len()), (0, 0));
    }
}
