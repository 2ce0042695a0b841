//! The misbehaviour itself, each written so that the optimizer keeps it.

use std::hint::black_box;
use std::io::{self, Write};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use pointwork_policy_sdk::PolicyError;
use pointwork_policy_sdk::target::Choice;

pub(crate) fn compute_for_ever() -> ! {
    let mut n = 0_u64;
    loop {
        n = black_box(n.wrapping_add(1));
    }
}

/// `abort` is a bare `unreachable` on this target; it prints nothing.
pub(crate) fn trap() -> ! {
    process::abort()
}

/// A block of memory, which a small limit refuses: then it ends in the allocator's own abort.
pub(crate) fn allocate(bytes: usize) {
    drop(black_box(vec![1_u8; black_box(bytes)]));
}

/// Ends in the allocator's own abort when memory is refused. The blocks are not touched: filling them would run into the
/// deadline first.
pub(crate) fn allocate_until_refused() -> ! {
    let mut blocks = Vec::new();
    loop {
        blocks.push(black_box(Vec::<u8>::with_capacity(1 << 20)));
    }
}

/// The first candidate and none by turns: the same question gets another answer.
pub(crate) fn remember() -> Choice {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    if ASKED.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) { Choice::Pick(0) } else { Choice::Reject }
}

/// Exhausts the engine's call stack: the frames hold nothing in linear memory, whose stack would be exhausted first.
pub(crate) fn recurse() -> u32 {
    deeper(0, black_box(u32::MAX))
}

/// Neither a tail call nor an accumulator, and with an end that the optimizer cannot rule out: it stays a recursion.
#[inline(never)]
fn deeper(depth: u32, end: u32) -> u32 {
    if depth == end { 0 } else { deeper(depth + 1, end).rotate_left(5) ^ depth }
}

/// Exhausts the guest's own stack long before the engine's: a thousand bytes a frame in linear memory.
#[inline(never)]
pub(crate) fn recurse_with_large_frames(depth: u32) -> u32 {
    let frame = black_box([depth; 256]);
    let below = if black_box(true) { recurse_with_large_frames(depth.wrapping_add(1)) } else { 0 };
    below ^ frame[depth as usize % 256]
}

/// What a host should log, and nothing else should come of it.
#[allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is the misbehaviour")]
pub(crate) fn print() -> Result<Choice, PolicyError> {
    println!("a line to stdout");
    eprintln!("a line to stderr");
    Ok(Choice::Pick(0))
}

/// A host that refuses further output is right to: that is no error here.
pub(crate) fn flood() -> Result<Choice, PolicyError> {
    let block = [b'~'; 4_096];
    let mut stdout = io::stdout().lock();
    for _ in 0..4_096 {
        let _ = stdout.write_all(&block).and_then(|()| stdout.write_all(b"\n"));
    }
    Ok(Choice::Pick(0))
}

#[allow(clippy::panic, reason = "panicking is the misbehaviour")]
pub(crate) fn panic_about(method: &str) -> ! {
    panic!("panics about {method}")
}

/// One copy of a block is one instruction, `memory.copy`, which looks at the deadline only when it starts. The blocks
/// double until the memory limit grants no more.
pub(crate) fn copy_for_ever() -> ! {
    let mut block = vec![1_u8; 1 << 16];
    loop {
        if block.try_reserve_exact(block.len()).is_ok() {
            block.extend_from_within(..);
        } else {
            let half = block.len() / 2;
            block.copy_within(..half, half);
        }
        black_box(&mut block);
    }
}
