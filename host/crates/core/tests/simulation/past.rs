//! The model of the history of absences: it keeps the whole log and reads it anew for every question.

use std::sync::Arc;

use pointwork_core::Time;
use pointwork_core::decisions::Departure;

const HOUR_US: u64 = 3_600_000_000;

#[derive(Default)]
pub(crate) struct Log(Vec<Entry>);

struct Entry {
    at: Time,
    room: (Arc<str>, Arc<str>),
    /// Why a daemon left and whether it was the last one; `None` is a return to an empty room.
    left: Option<(Departure, bool)>,
}

#[derive(Debug)]
pub(crate) struct Past {
    pub(crate) cause: Departure,
    pub(crate) gone_ms: u32,
    pub(crate) departures: u32,
    pub(crate) returns_ms: Vec<u32>,
    /// The last thing that happened is that the last daemon left.
    pub(crate) is_absent: bool,
}

impl Log {
    pub(crate) fn left(&mut self, room: &(Arc<str>, Arc<str>), cause: Departure, was_last: bool, at: Time) {
        self.0.push(Entry { at, room: room.clone(), left: Some((cause, was_last)) });
    }

    pub(crate) fn returned(&mut self, room: &(Arc<str>, Arc<str>), at: Time) {
        self.0.push(Entry { at, room: room.clone(), left: None });
    }

    pub(crate) fn past(&self, room: &(Arc<str>, Arc<str>), now: Time) -> Past {
        let ago = |at: Time| now.as_micros() - at.as_micros();
        let log: Vec<&Entry> = self.0.iter().filter(|entry| entry.room == *room).collect();
        // What came before a silence of an hour is forgotten; a return on its own is not remembered at all.
        let mut known: &[&Entry] = &[];
        for (index, entry) in log.iter().enumerate() {
            let is_continued = known.last().is_some_and(|last| entry.at.as_micros() - last.at.as_micros() < HOUR_US);
            known = match (is_continued, entry.left) {
                (true, _) => &log[index - known.len()..=index],
                (false, Some(_)) => &log[index..=index],
                (false, None) => &[],
            };
        }
        if known.last().is_none_or(|last| ago(last.at) >= HOUR_US) {
            known = &[];
        }
        let departed: Vec<(Time, Departure)> =
            known.iter().filter_map(|entry| Some((entry.at, entry.left?.0))).collect();
        let mut returns_ms = Vec::new();
        for pair in known.windows(2) {
            if let (Some((_, true)), None) = (pair[0].left, pair[1].left) {
                let absent = pair[1].at.as_micros() - pair[0].at.as_micros();
                returns_ms.insert(0, (absent / 1_000) as u32);
            }
        }
        returns_ms.truncate(8);
        let last = departed.last();
        Past {
            cause: last.map_or(Departure::NeverSeen, |(_, cause)| *cause),
            gone_ms: last.map_or(u32::MAX, |(at, _)| (ago(*at) / 1_000) as u32),
            departures: departed.iter().filter(|(at, _)| ago(*at) < HOUR_US).count() as u32,
            returns_ms,
            is_absent: known.last().is_some_and(|last| matches!(last.left, Some((_, true)))),
        }
    }
}
