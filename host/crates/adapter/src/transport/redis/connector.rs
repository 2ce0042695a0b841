//! Makes the fred clients of the three connections.

use std::time::Duration;

use fred::clients::Client;
use fred::types::config::{Config, ConnectionConfig, PerformanceConfig, ServerConfig, TcpConfig, UnresponsiveConfig};

use super::options::RedisOptions;

/// Fred reports a failed attempt twice. The second report must not be taken for that of the next attempt.
const RECONNECT_DELAY_MIN: Duration = Duration::from_millis(10);

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Writer,
    Reader,
    Subscriber,
}

/// Makes clients that are not connected yet. It has no `Debug`, because it holds the password.
pub(super) struct Connector {
    config: Config,
    connection: ConnectionConfig,
    pub(super) options: RedisOptions,
}

impl Connector {
    pub(super) fn new(config: Config, options: RedisOptions) -> Connector {
        let options = RedisOptions {
            command_timeout: at_least_a_millisecond(options.command_timeout),
            connect_timeout: at_least_a_millisecond(options.connect_timeout),
            reconnect_delay: options.reconnect_delay.max(RECONNECT_DELAY_MIN),
            silence_max: at_least_a_millisecond(options.silence_max),
            subscription_messages_max: options.subscription_messages_max.max(1),
            commands_max: options.commands_max.max(1),
            ..options
        };
        let connection = ConnectionConfig {
            connection_timeout: options.connect_timeout,
            internal_command_timeout: options.command_timeout,
            max_command_attempts: 1,
            max_redirections: 0,
            max_command_buffer_len: options.commands_max,
            tcp: TcpConfig { nodelay: Some(true), ..TcpConfig::default() },
            unresponsive: UnresponsiveConfig {
                max_timeout: Some(options.silence_max),
                interval: at_least_a_millisecond(options.silence_max / 4),
            },
            ..ConnectionConfig::default()
        };
        Connector { config, connection, options }
    }

    /// A client without a reconnect policy: it lives as long as its connection.
    pub(super) fn client(&self, role: Role) -> Client {
        let performance = PerformanceConfig {
            default_command_timeout: self.options.command_timeout,
            broadcast_channel_capacity: match role {
                Role::Subscriber => self.options.subscription_messages_max,
                Role::Writer | Role::Reader => 8,
            },
            ..PerformanceConfig::default()
        };
        Client::new(self.config.clone(), Some(performance), Some(self.connection.clone()), None)
    }

    /// Host and port, or the path of a socket.
    pub(super) fn server(&self) -> String {
        match &self.config.server {
            ServerConfig::Unix { path } => path.display().to_string(),
            server => server.hosts().first().map(ToString::to_string).unwrap_or_default(),
        }
    }
}

/// Fred takes zero for "no limit".
fn at_least_a_millisecond(time: Duration) -> Duration {
    time.max(Duration::from_millis(1))
}
