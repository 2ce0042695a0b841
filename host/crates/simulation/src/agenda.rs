//! Holds future events in the order in which they will happen.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events ordered by their moment `T`. Events of the same moment happen in the order in which they were entered.
pub(crate) struct Agenda<T, E> {
    heap: BinaryHeap<Reverse<(T, u64, usize)>>,
    entered: u64,
    /// The events. Entries of the heap refer to them by index, so that the heap moves numbers only.
    events: Vec<Option<E>>,
    free: Vec<usize>,
}

impl<T: Ord + Copy, E> Agenda<T, E> {
    pub(crate) fn new() -> Agenda<T, E> {
        Agenda { heap: BinaryHeap::new(), entered: 0, events: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn enter(&mut self, at: T, event: E) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.events.push(None);
            self.events.len() - 1
        });
        self.events[index] = Some(event);
        self.entered += 1;
        self.heap.push(Reverse((at, self.entered, index)));
    }

    /// When the next event happens.
    pub(crate) fn next_at(&self) -> Option<T> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// Takes the next event.
    pub(crate) fn pop(&mut self) -> Option<(T, E)> {
        let Reverse((at, _, index)) = self.heap.pop()?;
        self.free.push(index);
        Some((at, self.events[index].take()?))
    }
}
