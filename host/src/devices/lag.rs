//! How loaded the replica is: by how late its own tasks wake up.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use pointwork_core::devices::LoadBand;
use tokio::time::{Instant, sleep};

use super::state::Devices;

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(20);
/// Of so many looks the lag is worked out: ten seconds.
const LOOKS: usize = 500;
/// After so many looks it is worked out anew.
const EVERY: usize = 25;

/// Looks for as long as the layer lives.
pub(super) fn watch(devices: &Arc<Devices>) {
    let devices = Arc::downgrade(devices);
    tokio::spawn(async move {
        let mut lags: VecDeque<Duration> = VecDeque::with_capacity(LOOKS);
        for look in 1_usize.. {
            let began = Instant::now();
            sleep(LOOK).await;
            if lags.len() == LOOKS {
                lags.pop_front();
            }
            lags.push_back(began.elapsed().saturating_sub(LOOK));
            if look % EVERY == 0 {
                let Some(devices) = devices.upgrade() else { return };
                let lag_ms = u32::try_from(p99(&lags).as_millis()).unwrap_or(u32::MAX);
                metrics::gauge!("pointwork_runtime_lag_p99_ms").set(f64::from(lag_ms));
                devices.drive(|state, _| state.sessions.handle_load(LoadBand::of_lag_ms(lag_ms)));
            }
        }
    });
}

fn p99(lags: &VecDeque<Duration>) -> Duration {
    let mut sorted: Vec<Duration> = lags.iter().copied().collect();
    sorted.sort_unstable();
    sorted.get(sorted.len().saturating_sub(1) * 99 / 100).copied().unwrap_or_default()
}
