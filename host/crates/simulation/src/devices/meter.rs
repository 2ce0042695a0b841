//! Measures what a device goes through: how long it is stranded, unserved or offline, and how soon its session settles.

use pointwork_core::devices::DeviceStatus;

/// Adds up the times in which something was so, until the end of what is measured.
#[derive(Default)]
pub(super) struct DeviceMeter {
    end_us: u64,
    window_us: u64,
    /// Up to when everything is added up.
    at_us: u64,
    now: DeviceSituation,
    pub(super) flips: u64,
    pub(super) refused: u64,
    stranded_us: u64,
    unserved_us: u64,
    offline_us: u64,
    /// Since when the device has been stranded without a break.
    stranded_since_us: Option<u64>,
    last_open_us: Option<u64>,
    /// When bursts began that have not come to a stable socket.
    unsettled: Vec<u64>,
    /// The sum over those that have, and how many there are.
    settled_us: u64,
    settled: u64,
    /// What dashboards show: the status with the greatest epoch.
    shown: Option<(u64, DeviceStatus)>,
}

/// The situation of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct DeviceSituation {
    /// A socket is open that wants the session.
    pub(super) is_wanted: bool,
    /// The living socket that has the session, and since when.
    pub(super) served: Option<(usize, u64)>,
    has_begun: bool,
    is_offline: bool,
}

/// The outcomes of one device; times in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Measured {
    pub(super) flips: u64,
    pub(super) refused: u64,
    pub(super) stranded_us: u64,
    pub(super) unserved_us: u64,
    pub(super) offline_us: u64,
    pub(super) settled_us: u64,
    pub(super) bursts: u64,
}

impl DeviceMeter {
    pub(super) fn new(end_us: u64, window_us: u64) -> DeviceMeter {
        DeviceMeter { end_us, window_us, ..DeviceMeter::default() }
    }

    pub(super) fn opens(&mut self, now_us: u64) {
        if now_us >= self.end_us {
            return;
        }
        self.add_up(now_us);
        self.now.has_begun = true;
        if self.last_open_us.is_none_or(|last| now_us - last >= self.window_us) {
            self.unsettled.push(now_us);
        }
        self.last_open_us = Some(now_us);
    }

    /// Dashboards are told its status. Of two messages the one with the greater epoch is the later.
    pub(super) fn shows(&mut self, epoch: u64, status: DeviceStatus, now_us: u64) {
        if self.shown.is_some_and(|(known, _)| known > epoch) {
            return;
        }
        self.add_up(now_us);
        let was_ever_online = self.shown.is_some();
        if status != DeviceStatus::Offline || was_ever_online {
            self.shown = Some((epoch, status));
            self.now.is_offline = status == DeviceStatus::Offline;
        }
    }

    /// Whether a socket is open that wants the session, and which living one has it.
    pub(super) fn observe(&mut self, is_wanted: bool, served: Option<usize>, now_us: u64) {
        if (self.now.is_wanted, self.now.served.map(|(socket, _)| socket)) == (is_wanted, served) {
            return;
        }
        self.add_up(now_us);
        self.now.is_wanted = is_wanted;
        if self.now.served.map(|(socket, _)| socket) != served {
            self.settle(now_us);
            self.now.served = served.map(|socket| (socket, now_us));
        }
        self.stranded_since_us = self.is_stranded().then(|| self.stranded_since_us.unwrap_or(now_us));
    }

    /// How long the device has been stranded by now without a break.
    pub(super) fn stranded_for_us(&self, now_us: u64) -> u64 {
        self.stranded_since_us.map_or(0, |since| now_us - since)
    }

    /// Ends the measurement.
    pub(super) fn end(&mut self) -> Measured {
        self.add_up(self.end_us);
        // Whoever has the session then is taken to keep it.
        if let Some((_, since_us)) = self.now.served {
            let settled = self.unsettled.drain(..).map(|burst_us| since_us.max(burst_us) - burst_us);
            (self.settled, self.settled_us) =
                settled.fold((self.settled, self.settled_us), |(n, sum), us| (n + 1, sum + us));
        }
        let open_us: u64 = self.unsettled.iter().map(|burst_us| self.end_us - burst_us).sum();
        Measured {
            flips: self.flips,
            refused: self.refused,
            stranded_us: self.stranded_us,
            unserved_us: self.unserved_us,
            offline_us: self.offline_us,
            settled_us: self.settled_us + open_us,
            bursts: self.settled + self.unsettled.len() as u64,
        }
    }

    fn is_stranded(&self) -> bool {
        self.now.is_wanted && self.now.served.is_none()
    }

    /// The one that has the session loses it: the bursts that it has settled are those for which it was kept a whole
    /// window.
    fn settle(&mut self, now_us: u64) {
        let (Some((_, since_us)), until_us) = (self.now.served, now_us.min(self.end_us)) else { return };
        let window_us = self.window_us;
        for burst_us in
            self.unsettled.extract_if(.., |burst_us| until_us.saturating_sub(since_us.max(*burst_us)) >= window_us)
        {
            self.settled += 1;
            self.settled_us += since_us.max(burst_us) - burst_us;
        }
    }

    fn add_up(&mut self, now_us: u64) {
        let until_us = now_us.min(self.end_us);
        let span_us = until_us.saturating_sub(self.at_us);
        self.at_us = self.at_us.max(until_us);
        for (is_so, sum_us) in [
            (self.is_stranded(), &mut self.stranded_us),
            (self.now.has_begun && self.now.served.is_none(), &mut self.unserved_us),
            (self.now.is_offline, &mut self.offline_us),
        ] {
            if is_so {
                *sum_us += span_us;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW_US: u64 = 2_500;

    fn meter() -> DeviceMeter {
        DeviceMeter::new(100_000, WINDOW_US)
    }

    #[test]
    fn times_are_added_up_until_the_end() {
        let mut meter = meter();
        meter.opens(1_000);
        meter.observe(true, None, 1_500);
        meter.observe(true, Some(0), 2_000);
        meter.shows(1, DeviceStatus::Online, 2_000);
        meter.observe(false, None, 50_000);
        meter.shows(2, DeviceStatus::Offline, 60_000);
        meter.shows(1, DeviceStatus::Online, 61_000);
        meter.observe(true, None, 90_000);
        assert_eq!(meter.stranded_for_us(95_000), 5_000);
        meter.observe(true, Some(1), 110_000);
        let measured = meter.end();
        assert_eq!((measured.stranded_us, measured.unserved_us), (500 + 10_000, 1_000 + 50_000));
        assert_eq!(measured.offline_us, 40_000, "the older message says nothing");
        assert_eq!(meter.stranded_for_us(200_000), 0);
    }

    #[test]
    fn a_burst_ends_with_the_socket_that_is_kept_for_a_window() {
        let mut meter = meter();
        for at_us in [1_000, 2_000, 3_000] {
            meter.opens(at_us);
        }
        meter.observe(true, Some(0), 1_100);
        meter.observe(true, Some(1), 2_100);
        meter.observe(true, Some(2), 3_100);
        // Another burst, beside which the socket is kept.
        meter.opens(50_000);
        let measured = meter.end();
        assert_eq!((measured.bursts, measured.settled_us), (2, 2_100));
    }

    #[test]
    fn a_burst_that_is_not_settled_counts_to_the_end() {
        let mut meter = meter();
        meter.opens(40_000);
        meter.observe(true, Some(0), 41_000);
        meter.observe(true, None, 43_000);
        assert_eq!((meter.end().bursts, meter.end().settled_us), (1, 60_000));
    }
}
