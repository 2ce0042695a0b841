//! Checks that each alert has a section in docs/operate.md, and each section an alert.

use std::collections::BTreeSet;

use anyhow::Result;

use super::complaints;
use crate::workspace::Workspace;

/// The heading that the alerts' sections are under.
const CHAPTER: &str = "## What each alert means";

/// Errors when the alerts or the page are missing, or do not match.
pub(super) fn check(workspace: &Workspace) -> Result<()> {
    let wrong = compare(&workspace.read("deploy/prometheus/alerts.yaml")?, &workspace.read("docs/operate.md")?);
    complaints::refuse("deploy/prometheus/alerts.yaml and docs/operate.md", &wrong)
}

fn compare(rules: &str, page: &str) -> Vec<String> {
    let alerts: BTreeSet<_> = rules
        .lines()
        .filter_map(|line| line.trim_start().trim_start_matches("- ").strip_prefix("alert:"))
        .map(|name| name.trim().trim_matches(['"', '\'']))
        .collect();
    let chapter = page.lines().skip_while(|line| *line != CHAPTER).skip(1).take_while(|line| !line.starts_with("## "));
    let sections: BTreeSet<_> = chapter.filter_map(|line| line.strip_prefix("### ")).collect();
    let mut wrong = Vec::new();
    if alerts.is_empty() {
        wrong.push("there are no alerts".to_owned());
    }
    wrong.extend(alerts.difference(&sections).map(|alert| format!("{alert} has no section `### {alert}`")));
    wrong.extend(sections.difference(&alerts).map(|section| format!("the section {section} is about no alert")));
    let anchors = rules.lines().filter_map(|line| line.split_once("operate.md#")).map(|(_, rest)| rest);
    for anchor in anchors.map(|rest| rest.split(['"', '\'', ' ']).next().unwrap_or_default()) {
        if !sections.iter().any(|section| section.to_lowercase() == anchor) {
            wrong.push(format!("an alert links to #{anchor}, which is no section"));
        }
    }
    wrong
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    const RULES: &str = "groups:\n  - name: a\n    rules:\n      - alert: PointworkDown\n        runbook_url: docs/operate.md#pointworkdown\n";

    #[test]
    fn alerts_and_sections_are_the_same() {
        let page = |sections: &str| format!("# Operate\n### Other\n{CHAPTER}\n{sections}\n## Next\n### Elsewhere\n");
        assert_eq!(compare(RULES, &page("### PointworkDown")), Vec::<String>::new());
        assert_eq!(compare(RULES, &page("")).len(), 2);
        assert_eq!(compare(RULES, &page("### PointworkDown\n### PointworkUp")).len(), 1);
        assert_eq!(compare("groups: []\n", &page("")), ["there are no alerts"]);
        assert_eq!(compare(&RULES.replace("#pointworkdown", "#down"), &page("### PointworkDown")).len(), 1);
    }
}
