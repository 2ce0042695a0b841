//! The driver of a pure machine.
//!
//! ```text
//! event -> lock -> handle_* -> next_command … -> unlock -> carry out -> the next event
//!                              poll_timeout -> timer -> handle_timeout
//! ```
//! Commands are read under the lock and carried out after it. So a slow command never holds up another event.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;
use pointwork_core::Time;

use super::{Clock, timer::Timer};

/// A pure machine, with whatever its owner keeps beside it under the same lock.
pub(crate) trait Machine {
    /// What the machine wants done, with the handles that the ids in it stand for.
    type Command;

    /// The next command, in order.
    fn next_command(&mut self) -> Option<Self::Command>;

    /// The next deadline of the machine.
    fn poll_timeout(&self) -> Option<Time>;
}

/// A machine, its lock, its clock and its timer.
pub(crate) struct Driver<M> {
    machine: Mutex<M>,
    timer: Timer,
    clock: Clock,
}

impl<M: Machine> Driver<M> {
    pub(crate) fn new(machine: M, clock: Clock) -> Self {
        Self { machine: Mutex::new(machine), timer: Timer::new(), clock }
    }

    /// The machine's clock.
    pub(crate) const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Looks at the machine, without a step.
    pub(crate) fn peek<T>(&self, look: impl FnOnce(&M) -> T) -> T {
        look(&self.machine.lock())
    }

    /// Takes one step. Returns its result and the commands that it led to, in order.
    pub(crate) fn step<T>(&self, step: impl FnOnce(&mut M, Time) -> T) -> (T, Vec<M::Command>) {
        let mut machine = self.machine.lock();
        let result = step(&mut machine, self.clock.now());
        let commands = std::iter::from_fn(|| machine.next_command()).collect();
        let next = machine.poll_timeout();
        drop(machine);
        self.timer.set(next);
        (result, commands)
    }

    /// Takes one step and carries out all that follows from it. `carry_out` returns the commands that a command led to.
    pub(crate) fn drive<T>(
        &self,
        step: impl FnOnce(&mut M, Time) -> T,
        mut carry_out: impl FnMut(M::Command) -> Vec<M::Command>,
    ) -> T {
        let (result, commands) = self.step(step);
        let mut commands = VecDeque::from(commands);
        while let Some(command) = commands.pop_front() {
            commands.extend(carry_out(command));
        }
        result
    }

    /// The same for news that a task of the cluster brings, which must not be held up: a task of its own carries out what
    /// follows, in order, and yields after each command.
    pub(crate) fn drive_aside<T>(
        &self,
        step: impl FnOnce(&mut M, Time) -> T,
        mut carry_out: impl FnMut(M::Command) -> Vec<M::Command> + Send + 'static,
    ) -> T
    where
        M::Command: Send + 'static,
    {
        let (result, commands) = self.step(step);
        if !commands.is_empty() {
            tokio::spawn(async move {
                let mut commands = VecDeque::from(commands);
                while let Some(command) = commands.pop_front() {
                    commands.extend(carry_out(command));
                    tokio::task::yield_now().await;
                }
            });
        }
        result
    }

    /// Waits until the machine's next deadline has come.
    async fn due(&self) {
        self.timer.due(|| self.machine.lock().poll_timeout(), || self.clock.now()).await;
    }
}

/// Starts the task that calls `timed_out` whenever a deadline of the machine has come. It ends with `owner`.
pub(crate) fn keep_time<O, M>(
    owner: &Arc<O>,
    driver: impl Fn(&O) -> &Driver<M> + Send + 'static,
    timed_out: impl Fn(&Arc<O>) + Send + 'static,
) where
    O: Send + Sync + 'static,
    M: Machine + Send + 'static,
{
    let owner = owner.clone();
    tokio::spawn(async move {
        loop {
            driver(&owner).due().await;
            timed_out(&owner);
        }
    });
}
