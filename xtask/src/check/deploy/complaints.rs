//! Turns what a check complains about into an error.

use anyhow::{Result, bail};

/// Errors with all complaints, if there are any, about the files that are named.
pub(super) fn refuse(files: &str, complaints: &[String]) -> Result<()> {
    if !complaints.is_empty() {
        bail!("{files}:\n  {}", complaints.join("\n  "));
    }
    Ok(())
}
