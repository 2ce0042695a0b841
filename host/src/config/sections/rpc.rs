//! `[rpc]`: calls from one client to another. Defaults are those of the field's deployments.

use pointwork_core::decisions::rules::GRACE_MS;
use serde::{Deserialize, Serialize};

use crate::config::values::section::section;
use crate::config::values::{bounded::Bounded, text};

/// A week, in milliseconds.
const CALL_TIMEOUT_MAX: u32 = 7 * 24 * 3_600_000;

/// `[[rpc.method]]`: a rule for methods.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MethodConfig {
    /// Which methods: `*` stands for any text, `?` for one character; not `other`, which is a label of metrics already.
    #[serde(rename = "match", deserialize_with = "text::pattern")]
    pub pattern: String,
    /// How long their daemons may take to answer, in milliseconds.
    pub timeout_ms: Bounded<1, CALL_TIMEOUT_MAX>,
}

section! {
    /// Timeouts and limits of calls.
    pub struct RpcConfig {
        /// How long a call waits for a daemon that is not there, in milliseconds; 0 fails it at once.
        pub grace_ms: Bounded<0, 3_600_000> = Bounded::literal::<GRACE_MS>(),
        /// Between two looks for a daemon while a call waits, in milliseconds.
        pub reconnect_poll_ms: Bounded<1, 3_600_000> = Bounded::literal::<200>(),
        /// Between two looks whether the target of a call in flight is still there, in milliseconds.
        pub presence_poll_ms: Bounded<10, 3_600_000> = Bounded::literal::<1_000>(),
        /// How long a question to other replicas may take, in milliseconds.
        pub presence_fetch_timeout_ms: Bounded<1, 3_600_000> = Bounded::literal::<500>(),
        /// How long a daemon may take to answer, in milliseconds.
        pub call_timeout_ms: Bounded<1, CALL_TIMEOUT_MAX> = Bounded::literal::<30_000>(),
        /// The most that a caller may ask for by `timeoutMs`, in milliseconds.
        pub asked_timeout_max_ms: Bounded<1, CALL_TIMEOUT_MAX> = Bounded::literal::<3_600_000>(),
        /// How long the daemons of certain methods may take. The first that matches counts.
        #[serde(default)]
        pub method: Vec<MethodConfig> = Vec::new(),
        /// How many methods one socket may have registered at once.
        pub methods_per_socket_max: Bounded<1, 1_000_000> = Bounded::literal::<1_024>(),
        /// How many bytes the names of a socket's methods may have together; every replica holds them.
        pub method_bytes_per_socket_max: Bounded<4_096, 1_073_741_824> = Bounded::literal::<131_072>(),
        /// The longest method name, in bytes; the policies' contract promises no more than 4,096.
        pub method_bytes_max: Bounded<1, 4_096> = Bounded::literal::<4_096>(),
        /// How many calls of one user may be open at once.
        pub calls_per_user_max: Bounded<1, 10_000_000> = Bounded::literal::<1_000>(),
        /// How many calls may be open at once on this replica.
        pub calls_max: Bounded<1, 10_000_000> = Bounded::literal::<100_000>(),
        /// How much memory the parameters of open calls may take together on this replica, in MiB.
        pub request_memory_mib: Bounded<1, 65_536> = Bounded::literal::<256>(),
        /// How large a call may be as it comes, with its attachments, in bytes; `listen.max_payload_bytes` bounds it too.
        pub params_bytes_max: Bounded<1, 1_073_741_824> = Bounded::literal::<1_000_000>(),
        /// How many calls may wait for one method at once.
        pub waiting_per_method_max: Bounded<1, 10_000_000> = Bounded::literal::<1_000>(),
    }
}
