//! Writes all experiments as JSON and reads them.

use pointwork_core::experiments::Experiments as ExperimentList;

use super::error::{ExperimentStoreError, ExperimentStoreResult};

/// Reads all experiments and checks them.
pub(super) fn read_list(json: &[u8]) -> ExperimentStoreResult<ExperimentList> {
    let unreadable = |error: String| ExperimentStoreError::Unreadable(error);
    let list: ExperimentList = serde_json::from_slice(json).map_err(|error| unreadable(error.to_string()))?;
    list.check().map_err(|error| unreadable(error.to_string()))?;
    Ok(list)
}

pub(super) fn write_list(list: &ExperimentList) -> String {
    // JSON cannot express maps whose keys are not texts, and the list has none.
    serde_json::to_string(list).unwrap_or_default()
}
