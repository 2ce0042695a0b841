//! Limits the sockets of one user.

use std::sync::Arc;

use super::counts::{CountGuard, KeyedCounts, LimitReached, refused_counter};

/// Counts a socket of one user.
pub(crate) type UserSocketGuard = CountGuard<Arc<str>>;

/// Limits the sockets of each user in the root namespace.
#[derive(Clone)]
pub(crate) struct UserLimits {
    sockets: Arc<KeyedCounts<Arc<str>>>,
    refused: metrics::Counter,
}

impl UserLimits {
    /// `max` is the limit of each user; 0 means no limit.
    pub(crate) fn new(max: usize) -> Self {
        Self { sockets: Arc::new(KeyedCounts::new(max)), refused: refused_counter("user") }
    }

    /// Counts one more socket of `user`. `None` if there is no limit.
    ///
    /// # Errors
    /// When the user is at the limit, which is counted as refused.
    pub(crate) fn admit(&self, user: &Arc<str>) -> Result<Option<UserSocketGuard>, LimitReached> {
        if !self.sockets.is_limited() {
            return Ok(None);
        }
        let guard = self.sockets.take(user.clone());
        if guard.is_none() {
            self.refused.increment(1);
        }
        guard.map(Some).ok_or(LimitReached)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_the_sockets_of_one_user() {
        let (ada, bob): (Arc<str>, Arc<str>) = ("ada".into(), "bob".into());
        let users = UserLimits::new(1);
        let held = users.admit(&ada);
        assert!(matches!(held, Ok(Some(_))) && users.admit(&ada).is_err() && users.admit(&bob).is_ok());
        drop(held);
        assert!(users.admit(&ada).is_ok());
        assert!(matches!(UserLimits::new(0).admit(&ada), Ok(None)));
    }
}
