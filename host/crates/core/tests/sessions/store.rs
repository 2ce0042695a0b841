//! The store of the simulation: records changed by compare-and-set; it can be away, and come back empty.

use std::collections::BTreeMap;
use std::sync::Arc;

use pointwork_core::devices::{DeviceRecord, SwapResult};

#[derive(Default)]
pub(crate) struct Store {
    pub(crate) records: BTreeMap<Arc<str>, DeviceRecord>,
    pub(crate) is_away: bool,
    /// A mutation: it writes whatever epoch the record has.
    pub(crate) compares_nothing: bool,
}

impl Store {
    pub(crate) fn read(&self, device: &str) -> DeviceRecord {
        self.records.get(device).cloned().unwrap_or_default()
    }

    pub(crate) fn swap(&mut self, device: &Arc<str>, expected: u64, record: DeviceRecord) -> SwapResult {
        if self.read(device).epoch != expected && !self.compares_nothing {
            return SwapResult::Lost;
        }
        self.records.insert(device.clone(), record);
        SwapResult::Won
    }
}
