//! Remembers which sessions of users ended, so that a sign of life from before the end does not count.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Signs of life older than this are ignored anyway, in milliseconds: so long a end is kept.
pub const END_KEPT_MS: u64 = 10 * 60 * 1_000;
/// EndedSessions at once; when there are more, the oldest is forgotten.
pub const ENDS_MAX: usize = 100_000;
/// EndedSessions of one user at once, so that one cannot make the others' be forgotten; when there are more, the user's are not kept.
pub const ENDS_PER_USER_MAX: usize = 1_000;

/// Which sessions ended, and when. Times are milliseconds since the Unix epoch, as the sessions' clients told them.
#[derive(Debug, Default)]
pub struct EndedSessions {
    ends: HashMap<UserSession, u64>,
    by_time: BTreeSet<(u64, UserSession)>,
    of_user: HashMap<Arc<str>, usize>,
}

/// A session of a user.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserSession {
    /// The user.
    pub user: Arc<str>,
    /// The session's id.
    pub id: Arc<str>,
}

impl EndedSessions {
    /// No session has ended.
    pub fn new() -> EndedSessions {
        EndedSessions::default()
    }

    /// A session ended at `time_ms`. What is known of a later end stands.
    pub fn end(&mut self, session: UserSession, time_ms: u64, now_ms: u64) {
        self.forget_old(now_ms);
        if is_old(time_ms, now_ms) || self.ends.get(&session).is_some_and(|known| *known >= time_ms) {
            return;
        }
        if !self.remove(&session) && self.of_user.get(&session.user).is_some_and(|ends| *ends >= ENDS_PER_USER_MAX) {
            return;
        }
        *self.of_user.entry(session.user.clone()).or_default() += 1;
        self.ends.insert(session.clone(), time_ms);
        self.by_time.insert((time_ms, session));
        while self.by_time.len() > ENDS_MAX {
            self.forget_oldest();
        }
    }

    /// Whether a sign of life that a session gave at `time_ms` counts: it came after the session's last end.
    pub fn admits(&self, session: &UserSession, time_ms: u64) -> bool {
        self.ends.get(session).is_none_or(|end| time_ms > *end)
    }

    /// All that are known, the oldest first.
    pub fn all(&self) -> impl Iterator<Item = (&UserSession, u64)> {
        self.by_time.iter().map(|(time_ms, session)| (session, *time_ms))
    }

    fn forget_old(&mut self, now_ms: u64) {
        while self.by_time.first().is_some_and(|(time_ms, _)| is_old(*time_ms, now_ms)) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((_, session)) = self.by_time.first().cloned() {
            self.remove(&session);
        }
    }

    fn remove(&mut self, session: &UserSession) -> bool {
        let Some(time_ms) = self.ends.remove(session) else { return false };
        self.by_time.remove(&(time_ms, session.clone()));
        if let Some(ends) = self.of_user.get_mut(&session.user) {
            *ends -= 1;
            if *ends == 0 {
                self.of_user.remove(&session.user);
            }
        }
        true
    }
}

fn is_old(time_ms: u64, now_ms: u64) -> bool {
    time_ms.saturating_add(END_KEPT_MS) < now_ms
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 1_800_000_000_000;

    fn session(user: &str, id: &str) -> UserSession {
        UserSession { user: user.into(), id: id.into() }
    }

    #[test]
    fn ignores_signs_of_life_from_before_the_end() {
        let mut ended = EndedSessions::new();
        let one = session("u", "s");
        assert!(ended.admits(&one, 0));
        ended.end(one.clone(), NOW_MS, NOW_MS);
        assert!(!ended.admits(&one, NOW_MS - 1) && !ended.admits(&one, NOW_MS));
        assert!(ended.admits(&one, NOW_MS + 1), "it was taken up again");
        assert!(ended.admits(&session("v", "s"), 0) && ended.admits(&session("u", "t"), 0));
    }

    #[test]
    fn keeps_the_latest_end_in_any_order() {
        let mut ended = EndedSessions::new();
        let one = session("u", "s");
        for time_ms in [NOW_MS - 50, NOW_MS, NOW_MS - 20] {
            ended.end(one.clone(), time_ms, NOW_MS);
        }
        assert_eq!(ended.all().collect::<Vec<_>>(), [(&one, NOW_MS)]);
        assert_eq!(ended.of_user.get("u"), Some(&1));
    }

    #[test]
    fn forgets_an_end_when_nothing_older_would_be_believed() {
        let mut ended = EndedSessions::new();
        ended.end(session("u", "old"), NOW_MS - END_KEPT_MS - 1, NOW_MS);
        assert_eq!(ended.all().count(), 0);
        ended.end(session("u", "s"), NOW_MS, NOW_MS);
        ended.end(session("v", "t"), NOW_MS + END_KEPT_MS + 1, NOW_MS + END_KEPT_MS + 1);
        assert_eq!(ended.all().count(), 1);
        assert_eq!((ended.ends.len(), ended.of_user.len()), (1, 1));
    }

    #[test]
    fn limits_the_ends_of_one_user() {
        let mut ended = EndedSessions::new();
        for id in 0..ENDS_PER_USER_MAX + 5 {
            ended.end(session("u", &id.to_string()), NOW_MS, NOW_MS);
        }
        ended.end(session("u", "0"), NOW_MS + 1, NOW_MS);
        ended.end(session("v", "s"), NOW_MS, NOW_MS);
        assert_eq!(ended.all().count(), ENDS_PER_USER_MAX + 1);
        assert!(!ended.admits(&session("u", "0"), NOW_MS + 1));
    }

    #[test]
    fn forgets_the_oldest_end_when_there_are_too_many() {
        let mut ended = EndedSessions::new();
        for user in 0..=ENDS_MAX as u64 {
            ended.end(session(&user.to_string(), "s"), NOW_MS + user, NOW_MS);
        }
        assert_eq!((ended.all().count(), ended.ends.len(), ended.of_user.len()), (ENDS_MAX, ENDS_MAX, ENDS_MAX));
        assert!(ended.admits(&session("0", "s"), NOW_MS) && !ended.admits(&session("1", "s"), NOW_MS));
    }
}
