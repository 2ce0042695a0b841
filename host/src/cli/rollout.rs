//! `pointwork policy push | list | status | undo | retry | pull`: what operators do with the policies of a cluster, at any host of it.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use pointwork_policy::{Engine, SlotName, WASM_MAX_BYTES, inspect};
use serde_json::{Value, json};

use crate::{
    cli::admin_client::{AdminClient, encoded},
    operate::admin::{CONFIG_HEADER, DIGEST_HEADER, ascii},
};
use pointwork_policy::PolicyJson;

/// How often the status is asked for while it is waited.
const LOOK: Duration = Duration::from_millis(100);
/// The first digits of a digest that are shown in a list.
const SHORT: usize = 12;

/// What to push, and how.
#[derive(Debug, Clone)]
pub struct Push {
    /// The module.
    pub file: PathBuf,
    /// The slot; by what the module exports when it is not said.
    pub slot: Option<SlotName>,
    /// JSON, or `@` and a file of it; else the JSON file beside the module, if there is one.
    pub config: Option<String>,
    /// Whether those replicas switch that can.
    pub force: bool,
    /// How long it is waited until all have switched.
    pub wait: Duration,
}

/// Pushes a module; gives what became of it.
///
/// # Errors
/// When it is refused, fails on a replica, or has not come to all in time.
pub fn push(client: &AdminClient, push: &Push) -> anyhow::Result<String> {
    let named = || push.file.display().to_string();
    let wasm = fs::read(&push.file).with_context(named)?;
    let bytes = wasm.len();
    ensure!(bytes <= WASM_MAX_BYTES, "{} has {bytes} bytes, more than the {WASM_MAX_BYTES} of a policy", named());
    let slot = match push.slot {
        Some(slot) => slot,
        None => inspect(&Engine::new()?, &wasm).with_context(named)?.slot,
    };
    let config = ascii(&config_of(push)?);
    let path = format!("/v1/policies/{slot}/push?force={}", push.force);
    let pushed = client.post_raw(&path, &[(CONFIG_HEADER, &config)], &wasm)?;
    let wanted = Wanted { slot, pushed, force: push.force };
    wanted.wait(client, push.wait)
}

/// Back to what served before on every replica.
///
/// # Errors
/// When there is nothing to go back to, or not all have switched in time.
pub fn undo(client: &AdminClient, slot: SlotName, wait: Duration) -> anyhow::Result<String> {
    let pushed = client.post(&format!("/v1/policies/{slot}/undo"), &json!({}))?;
    if let Some(only_here) = only_here(slot, &pushed) {
        return Ok(only_here);
    }
    Wanted { slot, pushed, force: true }.wait(client, wait)
}

/// Takes a digest out of quarantine and pushes it again.
///
/// # Errors
/// As of [`push`].
pub fn retry(
    client: &AdminClient,
    slot: SlotName,
    digest: &str,
    force: bool,
    wait: Duration,
) -> anyhow::Result<String> {
    let asked = json!({ "digest": digest, "force": force });
    let pushed = client.post(&format!("/v1/policies/{slot}/retry"), &asked)?;
    if let Some(only_here) = only_here(slot, &pushed) {
        return Ok(only_here);
    }
    if pushed["arms"] == true {
        return Ok(format!("{slot}: arms of {} are asked again at this host\n", self::digest(&pushed["digest"])));
    }
    if pushed["pushed_ms"].is_null() {
        return Ok(format!("{slot}: {digest} may be pushed again; its module is not stored any more\n"));
    }
    Wanted { slot, pushed, force }.wait(client, wait)
}

/// Where the policy directory rules, the host answers with the slot as it is now.
fn only_here(slot: SlotName, answered: &Value) -> Option<String> {
    let policy = answered.as_object().filter(|policy| policy.contains_key("slot"))?;
    Some(format!("{slot}: {} serves on this host, until its file changes\n", digest(&policy["digest"])))
}

/// Writes a module to `out` and its configuration beside it, as `.json`.
///
/// # Errors
/// When there is no such module, or a file cannot be written.
pub fn pull(client: &AdminClient, slot: SlotName, digest: Option<&str>, out: &Path) -> anyhow::Result<String> {
    let query = digest.map(|digest| format!("?digest={}", encoded(digest))).unwrap_or_default();
    let raw = client.get_raw(&format!("/v1/policies/{slot}/module{query}"), WASM_MAX_BYTES as u64)?;
    let config: PolicyJson = serde_json::from_str(raw.header(CONFIG_HEADER).unwrap_or("{}"))?;
    let found = pointwork_policy::Digest::of_generation(&raw.body, &config.to_json()).to_string();
    let said = raw.header(DIGEST_HEADER).unwrap_or_default();
    ensure!(found == said, "what came is {found}, not {said}");
    let beside = out.with_extension("json");
    ensure!(beside != out, "--out must not end in .json: the configuration is written there");
    fs::write(out, &raw.body).with_context(|| out.display().to_string())?;
    fs::write(&beside, format!("{}\n", config.to_json())).with_context(|| beside.display().to_string())?;
    Ok(format!("{}: {} bytes, {found}\n{}: its configuration\n", out.display(), raw.body.len(), beside.display()))
}

/// One line a slot.
///
/// # Errors
/// When the host cannot be asked.
pub fn list(client: &AdminClient) -> anyhow::Result<String> {
    let status = client.get("/v1/policies")?;
    let mut report = format!("policies come from the {}\n", words(&status["source"]));
    for policy in array(&status["policies"]) {
        let name = match policy["source"].as_str() {
            Some("wasm") => format!("{} {}", words(&policy["name"]), words(&policy["version"])),
            _ => "native rule".to_owned(),
        };
        let digest = short(&policy["digest"]);
        report.push_str(&format!("{:9} {name:32} {digest:12} {}\n", words(&policy["slot"]), standing(policy)));
    }
    Ok(report)
}

/// All that is known of each slot on each replica.
///
/// # Errors
/// When the host cannot be asked.
pub fn status(client: &AdminClient, slot: Option<SlotName>, as_json: bool) -> anyhow::Result<String> {
    let status = client.get("/v1/policies")?;
    if as_json {
        return Ok(format!("{status:#}\n"));
    }
    let mut report = format!("policies come from the {}\n", words(&status["source"]));
    let wanted = |policy: &&Value| slot.is_none_or(|slot| policy["slot"] == slot.as_str());
    for policy in array(&status["policies"]).iter().filter(wanted) {
        report.push_str(&describe(policy));
    }
    Ok(report)
}

fn describe(policy: &Value) -> String {
    let mut lines = vec![format!("{}: {}", words(&policy["slot"]), standing(policy))];
    if policy["fresh"] == false {
        let why = if policy["trouble"].is_string() { "the pointer cannot be read" } else { "Redis does not answer" };
        lines.push(format!("  as it was seen last: {why} now"));
    }
    if policy["trouble"].is_string() {
        lines.push(format!("  trouble  {}", words(&policy["trouble"])));
    }
    let pointer = &policy["pointer"];
    if pointer.is_object() {
        lines.push(format!("  current  {}", digest(&pointer["current"])));
        let former: Vec<_> = array(&pointer["history"]).iter().map(digest).collect();
        if !former.is_empty() {
            lines.push(format!("  undo to  {}", former.join("\n           ")));
        }
    } else {
        lines.push(format!("  serving  {}", digest(&policy["digest"])));
    }
    if let Some(pending) = policy["pending"].as_object() {
        lines.push(format!("  pending  {}", digest(&pending["digest"])));
    }
    if policy["failed"].is_object() {
        lines.push(format!("  failed   {}", failure(&policy["failed"])));
    }
    let quarantined = if pointer.is_object() { &pointer["quarantined"] } else { &policy["quarantined"] };
    for bad in array(quarantined) {
        lines.push(format!("  quarantined {}: {}", digest(&bad["digest"]), words(&bad["why"])));
    }
    for (uid, replica) in policy["replicas"].as_object().into_iter().flatten() {
        lines.push(format!("  replica {uid}: {}", of_replica(replica)));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn of_replica(replica: &Value) -> String {
    if replica.get("generation").is_none() {
        return "has not reported".to_owned();
    }
    let mut said = format!("{} (generation {})", digest(&replica["digest"]), replica["generation"]);
    if replica["live"] == false {
        said.push_str(", not heard from");
    }
    if replica["error"].is_object() {
        let error = &replica["error"];
        let (kind, message) = (words(&error["kind"]), words(&error["message"]));
        said.push_str(&format!("; cannot prepare {}: {kind}: {message}", short(&error["digest"])));
    }
    said
}

fn standing(policy: &Value) -> &'static str {
    if policy["trouble"].is_string() {
        return "its pointer cannot be read";
    }
    match (policy["converged"].as_bool(), policy["pending"].is_object()) {
        (Some(_), true) => "being pushed",
        (Some(true), _) => "converged",
        (Some(false), _) => "not converged",
        (None, _) => "",
    }
}

/// A change that is waited for.
struct Wanted {
    slot: SlotName,
    /// What the host answered.
    pushed: Value,
    force: bool,
}

impl Wanted {
    fn wait(&self, client: &AdminClient, wait: Duration) -> anyhow::Result<String> {
        let until = Instant::now() + wait;
        if wait.is_zero() {
            return Ok(format!("{}: {} is being pushed\n", self.slot, digest(&self.pushed["digest"])));
        }
        loop {
            let status = client.get("/v1/policies")?;
            let policies = array(&status["policies"]);
            let policy = policies.iter().find(|policy| policy["slot"] == self.slot.as_str());
            let policy = policy.context("the host does not tell of this slot")?;
            if let Some(end) = self.end(policy)? {
                return Ok(end);
            }
            if Instant::now() >= until {
                bail!(
                    "{}: not done after {} ms: {}",
                    self.slot,
                    wait.as_millis(),
                    lagging(policy, &self.pushed["digest"])
                );
            }
            thread::sleep(LOOK);
        }
    }

    /// What came of it, once something has.
    fn end(&self, policy: &Value) -> anyhow::Result<Option<String>> {
        let (slot, wanted) = (self.slot, &self.pushed["digest"]);
        let pointer = &policy["pointer"];
        if pointer["version"].as_u64() < self.pushed["version"].as_u64() {
            return Ok(None);
        }
        let push = &self.pushed["pushed_ms"];
        if !push.is_null() && policy["pending"]["pushed_ms"] == *push {
            return Ok(None);
        }
        if !push.is_null() && policy["failed"]["pushed_ms"] == *push {
            bail!("{slot}: {}; what served before serves everywhere", failure(&policy["failed"]));
        }
        if pointer["current"] != *wanted {
            let is_bad = array(&pointer["quarantined"]).iter().any(|bad| bad["digest"] == *wanted);
            ensure!(!is_bad, "{slot}: {} failed while it served, and is in quarantine", digest(wanted));
            bail!("{slot}: another change came after it: {} is what serves", digest(&pointer["current"]));
        }
        if policy["converged"] == true {
            let count = policy["replicas"].as_object().map_or(0, |replicas| replicas.values().filter(is_live).count());
            return Ok(Some(format!("{slot}: {} serves on all {count} replicas\n", digest(wanted))));
        }
        let lagging = lagging(policy, wanted);
        let have_all_tried = policy["replicas"].as_object().is_some_and(|replicas| {
            replicas
                .values()
                .filter(is_live)
                .all(|replica| replica["digest"] == *wanted || replica["error"]["digest"] == *wanted)
        });
        Ok((self.force && have_all_tried)
            .then(|| format!("{slot}: {} serves, but not everywhere: {lagging}\n", digest(wanted))))
    }
}

fn is_live(replica: &&Value) -> bool {
    replica["live"] == true
}

/// Who does not serve `wanted`, and why.
fn lagging(policy: &Value, wanted: &Value) -> String {
    let replicas = policy["replicas"].as_object();
    let lagging =
        replicas.into_iter().flatten().filter(|(_, replica)| is_live(replica) && replica["digest"] != *wanted);
    let lagging: Vec<_> = lagging.map(|(uid, replica)| format!("replica {uid}: {}", of_replica(replica))).collect();
    if lagging.is_empty() { "the replica that was asked does not know more".to_owned() } else { lagging.join("; ") }
}

fn failure(failed: &Value) -> String {
    let (kind, message) = (words(&failed["kind"]), words(&failed["message"]));
    let at = failed["replica"].as_str().map(|uid| format!(" at replica {uid}")).unwrap_or_default();
    format!("the push of {} failed{at}: {kind}: {message}", digest(&failed["digest"]))
}

fn config_of(push: &Push) -> anyhow::Result<String> {
    let beside = push.file.with_extension("json");
    let read = |path: &Path| fs::read_to_string(path).with_context(|| path.display().to_string());
    let text = match &push.config {
        Some(config) => match config.strip_prefix('@') {
            Some(path) => read(Path::new(path))?,
            None => config.clone(),
        },
        None if beside.exists() => read(&beside)?,
        None => "{}".to_owned(),
    };
    Ok(serde_json::from_str::<PolicyJson>(&text).context("the configuration")?.to_json())
}

fn digest(value: &Value) -> String {
    value.as_str().unwrap_or("the native rule").to_owned()
}

fn short(value: &Value) -> String {
    value.as_str().map(|digest| digest.chars().take(SHORT).collect()).unwrap_or_default()
}

fn words(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn wanted(force: bool) -> Wanted {
        let pushed = json!({ "digest": "d", "version": 5, "pushed_ms": 70 });
        Wanted { slot: SlotName::Settle, pushed, force }
    }

    fn policy(current: &str, version: u64, converged: bool, replicas: Value) -> Value {
        let pointer = json!({ "current": current, "version": version, "quarantined": [] });
        json!({ "pointer": pointer, "converged": converged, "pending": null, "failed": null, "replicas": replicas })
    }

    #[test]
    fn what_became_of_a_push() {
        let one = json!({ "r": { "digest": "d", "generation": 1, "live": true, "error": null } });
        assert_eq!(wanted(false).end(&policy("c", 4, true, json!({}))).unwrap(), None, "it is of before the push");
        let done = wanted(false).end(&policy("d", 6, true, one.clone())).unwrap().unwrap();
        assert_eq!(done, "settle: d serves on all 1 replicas\n");
        let mut pending = policy("c", 5, false, one);
        pending["pending"] = json!({ "digest": "d", "pushed_ms": 70 });
        assert_eq!(wanted(false).end(&pending).unwrap(), None);
        let mut failed = policy("c", 6, true, json!({}));
        failed["failed"] =
            json!({ "digest": "d", "pushed_ms": 70, "replica": "r2", "kind": "memory", "message": "too little" });
        let error = wanted(false).end(&failed).unwrap_err().to_string();
        assert!(error.contains("failed at replica r2: memory: too little"), "{error}");
        let other = wanted(false).end(&policy("e", 9, true, json!({}))).unwrap_err().to_string();
        assert!(other.contains("another change"), "{other}");
        let mut bad = policy("c", 9, true, json!({}));
        bad["pointer"]["quarantined"] = json!([{ "digest": "d", "why": "traps" }]);
        assert!(wanted(false).end(&bad).unwrap_err().to_string().contains("quarantine"));
    }

    #[test]
    fn a_pointer_that_cannot_be_read_is_told() {
        let mut policy = policy("d", 6, false, json!({}));
        policy["slot"] = json!("settle");
        assert_eq!(standing(&policy), "not converged");
        (policy["trouble"], policy["fresh"]) = (json!("another kind of value"), json!(false));
        assert_eq!(standing(&policy), "its pointer cannot be read");
        let told = describe(&policy);
        assert!(told.contains("trouble  another kind of value") && !told.contains("does not answer"), "{told}");
    }

    #[test]
    fn a_forced_push_is_done_when_all_have_tried_and_says_who_cannot() {
        let error = json!({ "digest": "d", "kind": "memory", "message": "too little" });
        let replicas = json!({
            "r1": { "digest": "d", "generation": 2, "live": true, "error": null },
            "r2": { "digest": "c", "generation": 1, "live": true, "error": error },
        });
        let policy = policy("d", 6, false, replicas);
        assert_eq!(wanted(false).end(&policy).unwrap(), None);
        let done = wanted(true).end(&policy).unwrap().unwrap();
        assert!(done.contains("not everywhere: replica r2: c (generation 1); cannot prepare d: memory"), "{done}");
    }
}
