//! Runs work that may panic on a thread that must not end.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `work` and turns a panic into an error. A panic is a defect of the compiler or of ours, and must not end the thread that
/// all further loads need. `work` must not leave shared data half changed when it panics.
///
/// # Errors
/// The panic's message.
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let message =
            panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        format!("it panicked: {}", message.unwrap_or("no message"))
    })
}

#[cfg(test)]
#[allow(clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_message_of_a_panic_and_the_thread_goes_on() {
        let thread = std::thread::spawn(|| {
            let first: Result<(), _> = catch_panic(|| panic!("at {}", 7));
            let second: Result<(), _> = catch_panic(|| panic!("plainly"));
            (first, second, catch_panic(|| 3))
        });
        let panicked = |message: &str| Err(format!("it panicked: {message}"));
        assert_eq!(thread.join().ok(), Some((panicked("at 7"), panicked("plainly"), Ok(3))));
    }
}
