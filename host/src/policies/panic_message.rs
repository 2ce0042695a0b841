//! Work on what came from outside, on a thread that must go on whatever becomes of it.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// What `work` gives, or what it said when it panicked: a mistake of the compiler's or ours, which must not end the thread that all
/// further loads wait for. `work` leaves nothing half done that others see: what serves is changed in one step.
///
/// # Errors
/// The panic's message.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        format!("it panicked: {}", said.unwrap_or("no message"))
    })
}

#[cfg(test)]
#[allow(clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn what_panics_says_so_and_ends_nothing() {
        let gone = std::thread::spawn(|| {
            let first: Result<(), _> = caught(|| panic!("at {}", 7));
            let second: Result<(), _> = caught(|| panic!("plainly"));
            (first, second, caught(|| 3))
        });
        let panicked = |said: &str| Err(format!("it panicked: {said}"));
        assert_eq!(gone.join().ok(), Some((panicked("at 7"), panicked("plainly"), Ok(3))));
    }
}
