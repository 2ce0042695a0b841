//! Remembers how daemons left each room: why, how often, and how long each absence lasted.
//!
//! Bounded in three ways: so many rooms (the one untouched longest is forgotten first), so many departures and absences
//! of each, and one hour.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use crate::decisions::{Departure, RETURNS_MAX};
use crate::room::RpcRoom;
use crate::time::{SPAN_UNKNOWN, Time, span_ms};

/// How long anything is remembered: "in the last hour" of the policy contract.
pub const REMEMBERED: Duration = Duration::from_secs(3_600);
/// Departures of one room that are counted at most; a daemon that left more often in an hour shows this number.
pub const DEPARTURES_MAX: usize = 256;

/// The absences of rooms, for the `grace` and `presence` slots.
#[derive(Debug)]
pub struct History {
    rooms_max: usize,
    rooms: HashMap<RpcRoom, RoomHistory>,
    /// Every room by its last touch, oldest first.
    by_touch: BTreeMap<u64, RpcRoom>,
    touches: u64,
}

#[derive(Debug)]
struct RoomHistory {
    touch: u64,
    touched: Time,
    cause: Departure,
    left: Time,
    /// Since when nobody has the method; `None` while somebody has.
    absent: Option<Time>,
    /// Oldest first.
    departures: VecDeque<Time>,
    /// Newest first.
    absences_ms: VecDeque<u32>,
}

/// What is remembered of one room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Past {
    /// Why the last daemon left.
    pub cause: Departure,
    /// Milliseconds since it left; 4294967295 if none was seen.
    pub gone_ms: u32,
    /// Departures within the last hour, at most [`DEPARTURES_MAX`].
    pub departures: u32,
    /// How many milliseconds the last absences lasted, newest first; at most [`RETURNS_MAX`].
    pub returns_ms: Vec<u32>,
}

impl History {
    /// An empty history that remembers `rooms_max` rooms at most.
    pub fn new(rooms_max: usize) -> History {
        History { rooms_max, rooms: HashMap::new(), by_touch: BTreeMap::new(), touches: 0 }
    }

    /// A daemon left the room; `emptied` if it was the last one there.
    pub fn departed(&mut self, room: &RpcRoom, cause: Departure, emptied: bool, now: Time) {
        self.forget_old(now);
        let touch = self.next_touch();
        if let Some(entry) = self.rooms.get_mut(room) {
            self.by_touch.remove(&entry.touch);
            entry.touch = touch;
            entry.touched = now;
            entry.depart(cause, emptied, now);
        } else {
            let mut entry = RoomHistory {
                touch,
                touched: now,
                cause,
                left: now,
                absent: None,
                departures: VecDeque::new(),
                absences_ms: VecDeque::new(),
            };
            entry.depart(cause, emptied, now);
            self.rooms.insert(room.clone(), entry);
        }
        self.by_touch.insert(touch, room.clone());
        while self.rooms.len() > self.rooms_max {
            self.forget_oldest();
        }
    }

    /// The first daemon came to a room that nobody was in. Gives what had begun the absence that this ends, if one is
    /// remembered.
    pub fn returned(&mut self, room: &RpcRoom, now: Time) -> Option<Departure> {
        self.forget_old(now);
        let touch = self.next_touch();
        let entry = self.rooms.get_mut(room)?;
        self.by_touch.remove(&entry.touch);
        self.by_touch.insert(touch, room.clone());
        entry.touch = touch;
        entry.touched = now;
        let since = entry.absent.take()?;
        entry.absences_ms.truncate(RETURNS_MAX - 1);
        entry.absences_ms.push_front(span_ms(now.saturating_since(since)));
        Some(entry.cause)
    }

    /// What is remembered of a room; [`Departure::NeverSeen`] if nothing.
    pub fn past(&self, room: &RpcRoom, now: Time) -> Past {
        match self.rooms.get(room).filter(|entry| is_remembered(entry.touched, now)) {
            Some(entry) => Past {
                cause: entry.cause,
                gone_ms: span_ms(now.saturating_since(entry.left)),
                departures: entry.recent_departures(now),
                returns_ms: entry.absences_ms.iter().copied().collect(),
            },
            None => Past { cause: Departure::NeverSeen, gone_ms: SPAN_UNKNOWN, departures: 0, returns_ms: Vec::new() },
        }
    }

    /// Forgets what is older than an hour; the other calls do it by the way.
    pub fn forget_old(&mut self, now: Time) {
        while let Some(oldest) = self.by_touch.first_entry() {
            if self.rooms.get(oldest.get()).is_some_and(|entry| is_remembered(entry.touched, now)) {
                return;
            }
            let room = oldest.remove();
            self.rooms.remove(&room);
        }
    }

    /// How many rooms are remembered.
    pub fn rooms(&self) -> usize {
        self.rooms.len()
    }

    fn forget_oldest(&mut self) {
        if let Some((_, room)) = self.by_touch.pop_first() {
            self.rooms.remove(&room);
        }
    }

    fn next_touch(&mut self) -> u64 {
        self.touches += 1;
        self.touches
    }
}

impl RoomHistory {
    fn depart(&mut self, cause: Departure, emptied: bool, now: Time) {
        self.cause = cause;
        self.left = now;
        if emptied {
            self.absent = Some(now);
        }
        while self.departures.front().is_some_and(|at| !is_remembered(*at, now)) {
            self.departures.pop_front();
        }
        if self.departures.len() == DEPARTURES_MAX {
            self.departures.pop_front();
        }
        self.departures.push_back(now);
    }

    fn recent_departures(&self, now: Time) -> u32 {
        let old = self.departures.partition_point(|at| !is_remembered(*at, now));
        u32::try_from(self.departures.len() - old).unwrap_or(u32::MAX)
    }
}

fn is_remembered(at: Time, now: Time) -> bool {
    now.saturating_since(at) < REMEMBERED
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(method: &str) -> RpcRoom {
        RpcRoom { user: "u".into(), method: method.into() }
    }

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn nobody_was_ever_seen() {
        let past = History::new(8).past(&room("m"), at(5));
        let unknown = Past { cause: Departure::NeverSeen, gone_ms: u32::MAX, departures: 0, returns_ms: Vec::new() };
        assert_eq!(past, unknown);
    }

    #[test]
    fn an_absence_lasts_from_the_last_departure_to_the_first_return() {
        let mut history = History::new(8);
        history.departed(&room("m"), Departure::Closed, false, at(1_000));
        history.departed(&room("m"), Departure::TransportLost, true, at(2_000));
        let gone = history.past(&room("m"), at(2_500));
        assert_eq!((gone.cause, gone.gone_ms, gone.departures), (Departure::TransportLost, 500, 2));
        assert_eq!(gone.returns_ms, []);
        history.returned(&room("m"), at(2_700));
        history.departed(&room("m"), Departure::Drained, true, at(3_000));
        history.returned(&room("m"), at(3_100));
        assert_eq!(history.past(&room("m"), at(3_100)).returns_ms, [100, 700]);
    }

    #[test]
    fn a_departure_that_leaves_others_there_begins_no_absence() {
        let mut history = History::new(8);
        history.departed(&room("m"), Departure::Closed, false, at(1_000));
        history.returned(&room("m"), at(2_000));
        assert_eq!(history.past(&room("m"), at(2_000)).returns_ms, []);
    }

    #[test]
    fn the_last_absences_are_kept() {
        let mut history = History::new(8);
        for turn in 0..12u64 {
            history.departed(&room("m"), Departure::Closed, true, at(turn * 1_000));
            history.returned(&room("m"), at(turn * 1_000 + turn));
        }
        assert_eq!(history.past(&room("m"), at(12_000)).returns_ms, [11, 10, 9, 8, 7, 6, 5, 4]);
    }

    #[test]
    fn departures_are_those_of_the_last_hour_and_bounded() {
        let mut history = History::new(8);
        history.departed(&room("m"), Departure::Closed, true, at(0));
        history.departed(&room("m"), Departure::Closed, true, at(1_800_000));
        assert_eq!(history.past(&room("m"), at(3_599_999)).departures, 2);
        assert_eq!(history.past(&room("m"), at(3_600_000)).departures, 1);
        for _ in 0..2 * DEPARTURES_MAX {
            history.departed(&room("m"), Departure::Closed, true, at(3_600_000));
        }
        assert_eq!(history.past(&room("m"), at(3_600_000)).departures, 256);
    }

    #[test]
    fn an_hour_without_a_touch_forgets_the_room() {
        let mut history = History::new(8);
        history.departed(&room("a"), Departure::Closed, true, at(0));
        history.departed(&room("b"), Departure::Closed, true, at(0));
        history.returned(&room("a"), at(1));
        history.forget_old(at(3_600_000));
        assert_eq!(history.rooms(), 1);
        assert_eq!(history.past(&room("b"), at(3_600_000)).cause, Departure::NeverSeen);
        assert_eq!(history.past(&room("a"), at(3_600_000)).returns_ms, [1]);
        // Not swept yet, and not told any more.
        assert_eq!(history.past(&room("a"), at(3_600_001)).cause, Departure::NeverSeen);
        history.forget_old(at(3_600_001));
        assert_eq!((history.rooms(), history.by_touch.len()), (0, 0));
    }

    #[test]
    fn forgets_the_room_that_was_untouched_longest() {
        let mut history = History::new(2);
        history.departed(&room("a"), Departure::Closed, true, at(1));
        history.departed(&room("b"), Departure::Closed, true, at(2));
        history.returned(&room("a"), at(3));
        history.departed(&room("c"), Departure::Closed, true, at(4));
        assert_eq!((history.rooms(), history.by_touch.len()), (2, 2));
        assert_eq!(history.past(&room("b"), at(5)).cause, Departure::NeverSeen);
        assert_eq!(history.past(&room("a"), at(5)).returns_ms, [2]);
    }

    #[test]
    fn a_history_of_no_rooms_remembers_nothing() {
        let mut history = History::new(0);
        history.departed(&room("a"), Departure::Closed, true, at(1));
        history.returned(&room("a"), at(2));
        assert_eq!((history.rooms(), history.by_touch.len()), (0, 0));
    }
}
