//! Loads the settings: lays the layers over each other, and checks what must hold between them.

use std::{ffi::OsString, path::PathBuf};

use figment::Figment;

use super::{
    environment,
    error::ConfigError,
    layers::{self, Assignment, Layer},
};
use crate::config::{sections::policy::PolicySource, settings::Config};

/// What [`load`] reads.
#[derive(Default)]
pub struct Sources {
    /// The settings file; when `None`, the environment may name one (`POINTWORK_CONFIG`).
    pub file: Option<PathBuf>,
    /// Names and values, as [`std::env::vars_os`] gives them.
    pub environment: Vec<(OsString, OsString)>,
    /// From the flags, in rising precedence.
    pub flags: Vec<Assignment>,
}

/// Lays the layers over each other.
///
/// # Errors
/// The first setting, in rising precedence, that does not exist or has a wrong value, with its origin; or a file that
/// cannot be read.
pub fn load(sources: Sources) -> Result<Config, ConfigError> {
    let mut figment = Figment::from(Layer::defaults()?);
    if let Some(path) = sources.file.or_else(|| environment::file(&sources.environment)) {
        let layer = Layer::file(&path)?;
        let origin = layer.origin.clone();
        figment = figment.merge(layer);
        // A file has its own types, so `"5"` is no number.
        figment.extract::<Config>().map_err(|error| ConfigError::new(error, &origin))?;
    }
    let mut assignments = environment::assignments(&sources.environment)?;
    assignments.extend(sources.flags);
    for assignment in assignments {
        let layer = Layer::assignment(assignment)?;
        let origin = layer.origin.clone();
        figment = figment.merge(layer);
        // An assignment is text, which is read as the type of the setting.
        figment.extract_lossy::<Config>().map_err(|error| ConfigError::new(error, &origin))?;
    }
    let config = figment.extract_lossy::<Config>().map_err(|error| ConfigError::new(error, layers::DEFAULT))?;
    check_admin_token(&config, &figment)?;
    check_policy_source(&config, &figment)?;
    check_pairs(&config, &figment)?;
    Ok(config)
}

/// The layer that made a setting.
fn origin(figment: &Figment, setting: &str) -> String {
    figment.find_metadata(setting).map_or(layers::DEFAULT, |metadata| metadata.name.as_ref()).to_owned()
}

/// A certificate and its key belong together.
fn check_pairs(config: &Config, figment: &Figment) -> Result<(), ConfigError> {
    let listen = config.listen.tls.missing_key().map(|keys| ("listen", keys));
    let Some((section, (missing, given))) = listen.or_else(|| config.admin.missing_key().map(|keys| ("admin", keys)))
    else {
        return Ok(());
    };
    let given = format!("{section}.{given}");
    Err(ConfigError::Invalid {
        setting: format!("{section}.{missing}"),
        problem: format!("must be set, because `{given}` is"),
        origin: format!("the latter from {}", origin(figment, &given)),
    })
}

/// The source `cluster` needs a Redis.
fn check_policy_source(config: &Config, figment: &Figment) -> Result<(), ConfigError> {
    if config.policy.source == PolicySource::Directory || config.redis.url.is_some() {
        return Ok(());
    }
    let (setting, problem) = ("policy.source", "is `cluster`, which needs `redis.url`: the policies are kept in Redis");
    Err(ConfigError::Invalid {
        setting: setting.to_owned(),
        origin: origin(figment, setting),
        problem: problem.to_owned(),
    })
}

/// An admin listener that others can reach needs a token.
fn check_admin_token(config: &Config, figment: &Figment) -> Result<(), ConfigError> {
    let Some(problem) = config.admin.token_problem() else {
        return Ok(());
    };
    let origin = format!("address from {}", origin(figment, "admin.address"));
    Err(ConfigError::Invalid { setting: "admin.token".to_owned(), origin, problem })
}
