//! Checks the names in docs/operate.md: settings that the host has, metrics of its catalog, headings of the page itself.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::Result;

use super::complaints;
use crate::workspace::Workspace;

/// The sections of the settings.
const SECTIONS: [&str; 11] =
    ["listen", "admin", "drain", "auth", "redis", "policy", "rpc", "device", "metrics", "trace", "log"];
/// How the names of metrics begin.
const FAMILIES: [&str; 6] = ["rpc_", "websocket_", "redis_", "adapter_", "process_", "pointwork_"];
/// Where the metrics are listed.
const CATALOG: &str = "host/src/telemetry/catalog.rs";

/// Errors with all names that do not exist.
pub(super) fn check(workspace: &Workspace) -> Result<()> {
    let (page, catalog) = (workspace.read("docs/operate.md")?, workspace.read(CATALOG)?);
    let mut wrong = anchors(&page);
    let is_listed = |name: &&str| catalog.contains(&format!("\"{name}\""));
    wrong.extend(metrics(&page).iter().filter(|name| !is_listed(name)).map(|name| format!("{CATALOG} has no {name}")));
    for setting in settings(&page) {
        // The value is refused or not; only a name that does not exist is said to be unknown.
        let said =
            Command::new(workspace.host()).env_clear().args(["--set", &format!("{setting}=1"), "config"]).output()?;
        if String::from_utf8_lossy(&said.stderr).contains("unknown setting") {
            wrong.push(format!("the host has no setting {setting}"));
        }
    }
    complaints::refuse("docs/operate.md", &wrong)
}

/// The texts between single backticks outside of code blocks.
fn quoted(page: &str) -> impl Iterator<Item = &str> {
    let mut is_block = false;
    let text = page.lines().filter(move |line| {
        let is_fence = line.starts_with("```");
        is_block ^= is_fence;
        !is_block && !is_fence
    });
    text.flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// The settings that the page names, as `section.key`. `<slot>` stands for one slot.
fn settings(page: &str) -> BTreeSet<String> {
    let is_name = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c == '.');
    quoted(page)
        .map(|text| text.replace("<slot>", "target"))
        .map(|text| text.split(' ').next().unwrap_or_default().to_owned())
        .filter(|text| text.split_once('.').is_some_and(|(section, key)| SECTIONS.contains(&section) && is_name(key)))
        .collect()
}

/// The metrics that the page names, without labels.
fn metrics(page: &str) -> BTreeSet<&str> {
    let name = |text: &'_ str| {
        text.find(|c: char| !c.is_ascii_lowercase() && c != '_' && !c.is_ascii_digit()).unwrap_or(text.len())
    };
    quoted(page)
        .map(|text| &text[..name(text)])
        .filter(|text| FAMILIES.iter().any(|family| text.starts_with(family) && text.len() > family.len()))
        .collect()
}

/// Complains about links within the page that lead to no heading.
fn anchors(page: &str) -> Vec<String> {
    let slug = |heading: &str| {
        let kept = heading.trim_start_matches('#').trim().to_lowercase();
        kept.replace(' ', "-").replace(|c: char| !c.is_alphanumeric() && c != '-' && c != '_', "")
    };
    let headings: BTreeSet<_> = page.lines().filter(|line| line.starts_with('#')).map(slug).collect();
    let links = page.split("](#").skip(1).filter_map(|rest| rest.split_once(')')).map(|(anchor, _)| anchor);
    links.filter(|anchor| !headings.contains(*anchor)).map(|anchor| format!("#{anchor} leads to no heading")).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    const PAGE: &str = "# A page\n## On a machine, with it\nSee [it](#on-a-machine-with-it) and [more](#more).\n`redis.url`, \
                        `policy.<slot>.file`, `rpc_calls_total{result=\"timeout\"}`, `policy undo`, `rpc_`, `Cargo.toml`\n\
                        ```sh\necho `log.other` `rpc_other`\n```\n`log.format = \"json\"`\n";

    #[test]
    fn names_are_found_where_they_are_quoted() {
        assert_eq!(
            settings(PAGE),
            BTreeSet::from(["log.format", "policy.target.file", "redis.url"].map(str::to_owned))
        );
        assert_eq!(metrics(PAGE), BTreeSet::from(["rpc_calls_total"]));
    }

    #[test]
    fn a_link_leads_to_a_heading() {
        assert_eq!(anchors(PAGE), ["#more leads to no heading"]);
    }
}
