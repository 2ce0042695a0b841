//! Gives memory back to the system: large blocks at once, small ones when many clients have come or gone.
//!
//! A connection to Redis has queues of some megabytes. When glibc has seen such a block freed it takes the next ones from among the
//! small ones, where what is given back leaves holes: after some reconnects the process is larger by two or three sets of them.
//!
//! glibc keeps what was freed between blocks that are in use, and a storm of connections leaves much of that: what each
//! handshake took for a moment, and after the storm nearly all of it. Trimming returns whole pages.

use std::time::Duration;

use tokio::time::sleep;

use crate::edge::socketio::{SocketIo, connected};

/// Between two looks at the number of sockets.
const LOOK: Duration = Duration::from_secs(5);
/// So many sockets more or fewer than at the last trimming are worth another one: it takes a few milliseconds of one thread.
const WORTH_SOCKETS: usize = 500;

/// Blocks from this size on, in bytes, go back to the system when they are freed. Above what most messages take: it costs page faults.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_BYTES: libc::c_int = 512 << 10;

/// Has large blocks kept apart from small ones. Called once, before there are threads.
pub(super) fn keep_large_blocks_apart() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        #[expect(unsafe_code, reason = "a call into the C library that takes two numbers")]
        // SAFETY: mallopt changes how later allocations are made, and nothing of those that are there.
        let is_set = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES) };
        debug_assert_eq!(is_set, 1);
    }
}

/// Trims for as long as the runtime lives, each time when the number of sockets has changed and come to rest.
pub(super) fn keep_trimmed(io: SocketIo) {
    tokio::spawn(async move {
        let (mut trimmed, mut last) = (0_usize, 0_usize);
        loop {
            sleep(LOOK).await;
            let now = connected(&io);
            let is_at_rest = now.abs_diff(last) < WORTH_SOCKETS;
            if is_at_rest && now.abs_diff(trimmed) >= WORTH_SOCKETS {
                trimmed = now;
                // Allocating threads wait for the arena that is being trimmed, so no worker does it.
                let _ = tokio::task::spawn_blocking(trim).await;
            }
            last = now;
        }
    });
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn trim() {
    #[expect(unsafe_code, reason = "a call into the C library that takes a number and touches nothing of ours")]
    // SAFETY: malloc_trim may be called at any time from any thread.
    let trimmed = unsafe { libc::malloc_trim(0) };
    tracing::debug!(trimmed, "memory was given back to the system");
}

/// Other allocators give memory back by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim() {}
