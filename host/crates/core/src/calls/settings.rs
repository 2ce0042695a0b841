//! The bounds of a call machine. Each limits memory or work that a client could otherwise demand without end.

/// What one [`super::machine::CallMachine`] holds at most. Zero is a bound like any other: nothing of that kind is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallSettings {
    /// Calls that are not answered yet, in this call machine. Default 10,000.
    pub calls_max: usize,
    /// Calls of one user that are not answered yet. Default 1,000.
    pub calls_per_user_max: usize,
    /// Calls that wait for a daemon of one method of one user. Default 256.
    pub waiting_per_room_max: usize,
    /// Methods that one socket has registered. Default 1,024.
    pub methods_per_socket_max: usize,
    /// Bytes of the names of all methods of one socket: every replica holds them. Default 131,072.
    pub method_bytes_per_socket_max: usize,
    /// Bytes of a method's name. Default 4,096, which is what the policy contract promises.
    pub method_bytes_max: usize,
    /// Methods (of all users together) whose absences are remembered. Default 10,000.
    pub history_rooms_max: usize,
}

impl Default for CallSettings {
    fn default() -> CallSettings {
        CallSettings {
            calls_max: 10_000,
            calls_per_user_max: 1_000,
            waiting_per_room_max: 256,
            methods_per_socket_max: 1_024,
            method_bytes_per_socket_max: 131_072,
            method_bytes_max: 4_096,
            history_rooms_max: 10_000,
        }
    }
}
