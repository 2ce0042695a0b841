//! A policy's description of itself.

use serde::Serialize;

/// A policy's description of itself; checked against the contract's bounds when it is loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Info {
    /// Lower case with dashes, at most 64 bytes.
    pub name: String,
    /// The policy's own version, at most 64 bytes.
    pub version: String,
    /// One sentence for the operator, at most 512 bytes.
    pub summary: String,
}

impl Info {
    /// Checks the bounds that the contract sets; the error names the field.
    pub(crate) fn check(&self) -> Result<(), String> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || self.name.len() > 64 || !self.name.chars().all(plain) {
            return Err("name: 1 to 64 of a-z, 0-9 and dashes".into());
        }
        if self.version.is_empty() || self.version.len() > 64 || !self.version.chars().all(|c| c.is_ascii_graphic()) {
            return Err("version: 1 to 64 visible ASCII characters".into());
        }
        if self.summary.len() > 512 || self.summary.chars().any(char::is_control) {
            return Err("summary: at most 512 bytes, without control characters".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Info;

    fn info(name: &str, version: &str, summary: &str) -> Info {
        Info { name: name.into(), version: version.into(), summary: summary.into() }
    }

    #[test]
    fn checks_the_bounds() {
        assert_eq!(info("least-loaded", "0.1.0", "Least loaded.").check(), Ok(()));
        for bad in [
            info("", "1", ""),
            info("Least", "1", ""),
            info(&"a".repeat(65), "1", ""),
            info("a", "", ""),
            info("a", "1 2", ""),
            info("a", "1", "two\nlines"),
            info("a", "1", &"s".repeat(513)),
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
