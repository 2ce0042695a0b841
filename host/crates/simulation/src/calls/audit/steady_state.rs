//! Checks the invariants of a machine without commands, and of a world that has healed.

use std::collections::BTreeMap;

use pointwork_core::{Announcer, CallId, CallLoad, SocketId, Time};

use super::auditor::CallAuditor;
use super::call_record::{CallRecord, GraceState};
use crate::calls::events::Process;
use crate::calls::replica::SimulatedMachine;
use crate::calls::rooms::RoomNames;

impl CallAuditor {
    /// Checks a machine that has no command left.
    pub(crate) fn check_steady(&mut self, process: Process, machine: &SimulatedMachine, now: Time) {
        let load = machine.load();
        let wake = machine.poll_timeout();
        let view = &self.views[process];
        let open: Vec<(CallId, &CallRecord)> =
            view.open.iter().map(|call| (*call, &view.calls[call.0 as usize - 1])).collect();
        let find = |is: &dyn Fn(&CallRecord) -> bool| open.iter().find(|(_, record)| is(record)).map(|(call, _)| *call);
        let deserted = find(&|record| record.has_caller_left);
        let overlooked = find(&|record| record.wait != GraceState::None && !view.is_unserved(record.room));
        let misinformed = find(&CallRecord::is_caller_misinformed);
        let disobeyed = find(&|record| record.is_disobeyed(now));
        let in_flight = open.iter().filter(|(_, record)| record.sent.is_some()).count();
        let is_waiting = |record: &CallRecord| record.sent.is_none() && view.is_unserved(record.room);
        let unserved = open.iter().filter(|(_, record)| is_waiting(record)).count();
        let deadline = open.iter().map(|(_, record)| record.deadline).min();
        let open = open.len();
        self.demand(disobeyed.is_none(), "obeyed", || format!("what is said of {disobeyed:?} is not done"));
        self.demand(deserted.is_none(), "one-answer", || format!("the caller of {deserted:?} left, and it goes on"));
        self.demand(overlooked.is_none(), "no-waiting-while-served", || format!("{overlooked:?} waits"));
        self.demand(misinformed.is_none(), "held", || format!("the caller of {misinformed:?} is told wrong"));
        self.demand(deadline.is_none_or(|deadline| deadline > now), "in-time", || {
            format!("a call has until {deadline:?}, and it is {now:?}")
        });
        self.demand(load.waiting <= unserved, "no-waiting-while-served", || {
            format!("{} wait, {unserved} could", load.waiting)
        });
        let counts = (load.calls, load.timers, load.in_flight);
        self.demand(counts == (open, open, in_flight), "one-timer", || {
            format!("{open} calls are open, {in_flight} in flight; calls, timers and in flight are {counts:?}")
        });
        let is_woken = match (wake, deadline) {
            (Some(wake), Some(deadline)) => wake <= deadline,
            (wake, deadline) => wake.is_none() && deadline.is_none(),
        };
        let is_nothing = load.calling_users + load.callers + load.waiting == 0;
        self.demand(is_woken && (open > 0 || is_nothing), "one-timer", || {
            format!("{open} calls are open until {deadline:?}; wake {wake:?}, {load:?}")
        });
    }

    /// Checks after everything has healed that a process knows the registrations of all sockets.
    pub(crate) fn check_in_step(&mut self, process: Process, announcers: &[&Announcer], names: &RoomNames, now: Time) {
        let mut expected: BTreeMap<SocketId, u8> = BTreeMap::new();
        for announcer in announcers {
            for announced in announcer.snapshot(now).sockets {
                let rooms = announced.methods.iter().map(|(method, _)| names.room(&announced.user, method).bit());
                expected.insert(announced.socket, rooms.fold(0, |all, bit| all | bit));
            }
        }
        let view = &self.views[process];
        // Those whose daemons have other sockets, of which their own process may not have heard.
        expected.retain(|socket, _| !view.given_up.contains(socket));
        let mut known: BTreeMap<SocketId, u8> = BTreeMap::new();
        for (room, members) in view.rooms.iter().enumerate() {
            for member in members.iter().filter(|member| !view.given_up.contains(&member.socket)) {
                *known.entry(member.socket).or_default() |= 1 << room;
            }
        }
        let is_linked = view.is_linked;
        self.demand(is_linked && known == expected, "in-step", || {
            format!("r{process} (linked: {is_linked}) knows {known:?}, and registered are {expected:?}")
        });
    }

    /// Checks after all clients have left that only the history of methods remains.
    pub(crate) fn check_nothing_left(&mut self, process: Process, machine: &SimulatedMachine) {
        let load = machine.load();
        let left = (CallLoad { remembered_rooms: 0, ..load }, machine.poll_timeout());
        self.demand(left == (CallLoad::default(), None), "nothing-left", || format!("r{process} still has {left:?}"));
    }

    pub(crate) fn open_calls(&self, process: Process) -> usize {
        self.views[process].open.len()
    }
}
