//! The layers of the settings: defaults, the file, and single assignments from the environment and the flags.

use std::path::Path;

use figment::util::nest;
use figment::value::{Dict, Map, Value};
use figment::{Metadata, Profile, Provider};

use super::error::ConfigError;
use crate::config::sections::policy::SLOTS;
use crate::config::settings::Config;

/// The origin of defaults.
pub(in crate::config) const DEFAULT: &str = "default";

/// One setting from a flag or a variable, as text.
#[derive(Clone)]
pub struct Assignment {
    setting: String,
    value: String,
    origin: String,
}

impl Assignment {
    /// `setting` is `section.key`; `origin` is how an error names the place, such as `flag --listen`.
    pub fn new(setting: impl Into<String>, value: impl Into<String>, origin: impl Into<String>) -> Self {
        Self { setting: setting.into(), value: value.into(), origin: origin.into() }
    }

    /// Reads `section.key=value`, the argument of `--set`.
    ///
    /// # Errors
    /// [`ConfigError::Assignment`] when there is no `=`, no section or no key.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let (setting, value) = text.split_once('=').unwrap_or((text, ""));
        let segments: Vec<&str> = setting.split('.').collect();
        if !text.contains('=') || segments.len() < 2 || segments.contains(&"") {
            return Err(ConfigError::Assignment { given: setting.to_owned(), origin: "flag --set".to_owned() });
        }
        Ok(Self::new(setting, value, format!("flag --set {setting}")))
    }
}

// Not derived, because the value may be a secret.
impl std::fmt::Debug for Assignment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.setting, self.origin)
    }
}

/// Settings from one place.
#[derive(Clone)]
pub(in crate::config) struct Layer {
    pub(in crate::config) origin: String,
    settings: Dict,
}

impl Layer {
    /// Every setting's default.
    pub(in crate::config) fn defaults() -> Result<Self, ConfigError> {
        let settings = Value::serialize(Config::default())
            .map_err(|error| ConfigError::new(error, DEFAULT))?
            .into_dict()
            .unwrap_or_default();
        Ok(Self { origin: DEFAULT.to_owned(), settings })
    }

    /// The settings in a TOML file.
    pub(in crate::config) fn file(path: &Path) -> Result<Self, ConfigError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        // The error's own display quotes the line, which may contain a secret.
        let settings = toml::from_str(&text).map_err(|error| ConfigError::Syntax {
            path: path.to_owned(),
            line: line_at(&text, error.span().map_or(0, |span| span.start)),
            problem: error.message().to_owned(),
        })?;
        Ok(Self { origin: format!("file {}", path.display()), settings })
    }

    /// One assignment.
    pub(in crate::config) fn assignment(assignment: Assignment) -> Result<Self, ConfigError> {
        let Assignment { setting, value, origin } = assignment;
        if let Some(whole) = inside_policy_json(&setting) {
            return Err(ConfigError::Invalid {
                problem: format!(
                    "cannot be set by itself: its type is the policy's to know. Set `{whole}` to a JSON object"
                ),
                setting,
                origin,
            });
        }
        let settings = nest(&setting, Value::from(value)).into_dict().unwrap_or_default();
        Ok(Self { origin, settings })
    }
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.origin.clone())
    }

    fn data(&self) -> figment::Result<Map<Profile, Dict>> {
        Ok(Profile::Default.collect(self.settings.clone()))
    }
}

/// `policy.<slot>.config` when `setting` points to something below it.
fn inside_policy_json(setting: &str) -> Option<String> {
    SLOTS
        .iter()
        .map(|slot| format!("policy.{slot}.config"))
        .find(|whole| setting.strip_prefix(whole.as_str()).is_some_and(|rest| rest.starts_with('.')))
}

fn line_at(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().iter().take(offset);
    1 + before.filter(|&&byte| byte == b'\n').count()
}
