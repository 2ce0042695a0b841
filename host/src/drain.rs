//! Leaves a cluster without breaking off calls: no new ones for this replica's daemons, and those in flight may end.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};

use crate::{cluster::Replicas, rpc::Rpc};

/// Between two looks whether all calls have ended.
const LOOK: Duration = Duration::from_millis(10);
/// So many looks in a row find nothing before the sockets are closed.
const QUIET_LOOKS: u32 = 3;

/// Tells the other replicas that this one is leaving and waits until no call is in flight to its daemons, at most for `drain_max`. The
/// daemons will be back at another replica, where calls wait for them.
///
/// A replica without others, or that cannot reach them, does not wait: its daemons have nowhere to go.
pub(crate) async fn drain(rpc: &Arc<Rpc>, replicas: &Replicas, drain_max: Duration) {
    let standing = replicas.cluster().standing();
    if !standing.linked || standing.peers as u64 + standing.foreign == 0 {
        return;
    }
    replicas.leaving();
    rpc.draining(0, true);
    let deadline = Instant::now() + drain_max;
    let hide_at = Instant::now() + drain_max / 2;
    let mut is_hidden = false;
    // A call may be between the machine and the wire, seen by neither; not for so long.
    let mut quiet = 0;
    loop {
        let (here, from_others) = (rpc.in_flight_here(), replicas.cluster().serving());
        quiet = if here + from_others == 0 && replicas.is_leaving_known() { quiet + 1 } else { 0 };
        // Servers of another kind find daemons by their rooms, and take one that is in none for gone, with the calls in flight to it: so
        // not before those have ended, or new ones follow each other for too long.
        if !is_hidden && (quiet > 0 || Instant::now() >= hide_at) {
            rpc.hide();
            (is_hidden, quiet) = (true, 0);
        }
        if quiet == QUIET_LOOKS {
            return;
        }
        if Instant::now() >= deadline {
            tracing::warn!(here, from_others, "calls in flight are broken off");
            return;
        }
        sleep(LOOK).await;
    }
}
