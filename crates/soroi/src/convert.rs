//! `soroi config`: settings of Kueue as settings of Soroi.
//!
//! Every setting of the file is either carried over or named, with the reason why it is not: nothing is
//! lost silently. Knows the fields of `config.kueue.x-k8s.io` (Kueue 0.18, v1beta1 and v1beta2). What
//! Soroi's own fields mean is known by `run::config`, which also judges what comes out.

use std::collections::BTreeMap;
use std::io::{Read as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use serde_json::{Map, Value, json};

use crate::run::config;

/// What can be done with settings.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Print Soroi's settings for those of a Kueue
    ///
    /// Reads a Configuration of `config.kueue.x-k8s.io`, or the ConfigMap that holds one, and prints a
    /// Configuration for `soroi run --config`. What has no meaning here is named in comments, each with
    /// the reason.
    #[command(after_help = "\
Example:
  kubectl --namespace kueue-system get configmap kueue-manager-config --output yaml | soroi config convert -")]
    Convert {
        /// The file; `-` for standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// Does it.
pub(crate) fn run(command: &Command, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let Command::Convert { file } = command;
    let text = read(file)?;
    let converted = convert(&text).with_context(|| file.display().to_string())?;
    out.write_all(converted.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn read(file: &Path) -> anyhow::Result<String> {
    if file != Path::new("-") {
        return std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()));
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
    Ok(text)
}

const GROUP: &str = "config.kueue.x-k8s.io/";

/// The whole answer.
fn convert(text: &str) -> anyhow::Result<String> {
    let kueue = configuration(document(text)?)?;
    let version = kueue["apiVersion"].as_str().unwrap_or_default().to_owned();
    let mut settings = Settings::new(kueue);
    let mut ours = json!({});
    carry_over(&mut settings, &mut ours);
    wait_for_pods_ready(&mut settings, version == format!("{GROUP}v1beta1"), &mut ours);
    let mut answer = format!("# From a {version} Configuration.\n");
    answer += &format!("apiVersion: {}\nkind: {}\n", config::API_VERSION, config::KIND);
    answer += &serde_saphyr::to_string(&ours)?;
    config::parse(&answer).context("Soroi cannot have these settings together")?;
    answer += &settings.named();
    Ok(answer)
}

/// The document that holds settings: the only one, or the only one of several that may.
fn document(text: &str) -> anyhow::Result<Value> {
    let mut documents: Vec<Value> = serde_saphyr::from_multiple(text)?;
    if documents.len() > 1 {
        let of_kueue =
            |file: &Value| file["apiVersion"].as_str().is_some_and(|version| version.starts_with(GROUP));
        let in_map = |file: &Value| file["kind"] == "ConfigMap" && file["data"].to_string().contains(GROUP);
        documents.retain(|file| of_kueue(file) || in_map(file));
    }
    match <[Value; 1]>::try_from(documents) {
        Ok([document]) => Ok(document),
        Err(several) => bail!(
            "the file must hold one Configuration of {}, or the ConfigMap with it; it holds {}",
            GROUP.trim_end_matches('/'),
            several.len()
        ),
    }
}

/// The Configuration itself, or that of a ConfigMap.
fn configuration(mut file: Value) -> anyhow::Result<Value> {
    if file["kind"] == "ConfigMap" {
        let data = file["data"].as_object().into_iter().flatten();
        let mut texts = data.filter_map(|(_, text)| text.as_str());
        let (Some(text), None) = (texts.next(), texts.next()) else {
            bail!("data: the ConfigMap must hold one file");
        };
        file = serde_saphyr::from_str(text).context("data")?;
    }
    let version = file["apiVersion"].as_str().unwrap_or_default();
    if !["v1beta1", "v1beta2"].iter().any(|known| version.strip_prefix(GROUP) == Some(known)) {
        bail!("apiVersion: must be {GROUP}v1beta1 or v1beta2, not {version:?}");
    }
    if file["kind"] != config::KIND {
        bail!("kind: must be {}, not {}", config::KIND, file["kind"]);
    }
    if let Some(file) = file.as_object_mut() {
        file.remove("kind");
    }
    Ok(file)
}

/// What is still to be carried over or named: one value per path. Lists are values.
struct Settings(BTreeMap<String, Value>);

impl Settings {
    fn new(mut kueue: Value) -> Self {
        let mut flat = BTreeMap::new();
        if let Some(kueue) = kueue.as_object_mut() {
            kueue.remove("apiVersion");
            flatten("", kueue, &mut flat);
        }
        Self(flat)
    }

    fn take(&mut self, path: &str) -> Option<Value> {
        self.0.remove(path)
    }

    fn text(&mut self, path: &str) -> Option<String> {
        self.take(path).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    }

    /// Takes an address that Soroi can have, too; any other is left to be named.
    fn address(&mut self, path: &str) -> Option<String> {
        let text = self.0.get(path)?.as_str()?;
        let address = whole(text)?;
        self.take(path);
        Some(address)
    }

    /// Takes the two halves of the webhooks' address.
    fn host_and_port(&mut self) -> Option<String> {
        let port = self.0.get("webhook.port")?;
        let host = self.0.get("webhook.host").and_then(Value::as_str).unwrap_or_default();
        let address = whole(&format!("{host}:{port}"))?;
        self.take("webhook.port");
        self.take("webhook.host");
        Some(address)
    }

    /// What has not been carried over, with the reasons.
    fn named(self) -> String {
        let (mut same, mut lost) = (String::new(), String::new());
        for (path, value) in self.0 {
            let line = |words: &str| format!("#   {path}: {value}\n#     {words}\n");
            match reason(&path) {
                Some((Some(here), words)) if value == here => same += &line(words),
                Some((_, words)) => lost += &line(words),
                None => lost += &line("unknown to Soroi, and to the Kueue that it was compared with (0.18)"),
            }
        }
        let mut named = String::new();
        for (head, lines) in [("As Soroi does it anyway", same), ("Without effect here", lost)] {
            if !lines.is_empty() {
                named += &format!("#\n# {head}:\n{lines}");
            }
        }
        named
    }
}

/// `:8081` means every address.
fn whole(text: &str) -> Option<String> {
    let text = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_owned() };
    text.parse::<std::net::SocketAddr>().is_ok().then_some(text)
}

fn flatten(head: &str, map: &Map<String, Value>, flat: &mut BTreeMap<String, Value>) {
    for (key, value) in map {
        let path = if head.is_empty() { key.clone() } else { format!("{head}.{key}") };
        match value {
            Value::Object(map) if !map.is_empty() => flatten(&path, map, flat),
            Value::Null => {}
            value => {
                flat.insert(path, value.clone());
            }
        }
    }
}

/// The gate by which Kueue tells apart why a Workload waits; on by default from 0.19 on.
const GRANULAR_REASONS: &str = "featureGates.UnadmittedWorkloadsObservability";

fn carry_over(settings: &mut Settings, ours: &mut Value) {
    if settings.0.get(GRANULAR_REASONS) == Some(&Value::Bool(true)) {
        settings.take(GRANULAR_REASONS);
        ours["compat"]["reasons"] = "0.19".into();
    }
    for (theirs, group, field) in [
        ("leaderElection.leaseDuration", "leaderElection", "leaseDuration"),
        ("leaderElection.retryPeriod", "leaderElection", "renewEvery"),
    ] {
        if let Some(span) = settings.text(theirs) {
            ours[group][field] = span.into();
        }
    }
    // It is on when it is mentioned; before v1beta2 that had to be said.
    let enabled = settings.take("fairSharing.enable");
    let strategies = settings.take("fairSharing.preemptionStrategies");
    let mentioned = settings.take("fairSharing").is_some() || strategies.is_some() || enabled.is_some();
    if mentioned && enabled != Some(json!(false)) {
        ours["fairSharing"] = json!({});
        if let Some(strategies) = strategies {
            ours["fairSharing"]["preemptionStrategies"] = strategies;
        }
    }
    for (group, fields) in [
        ("resources", &["quotaCheckStrategy", "excludeResourcePrefixes", "transformations"][..]),
        ("objectRetentionPolicies.workloads", &["afterFinished", "afterDeactivatedByKueue"]),
    ] {
        for field in fields {
            if let Some(value) = settings.take(&format!("{group}.{field}")) {
                let place = group.split('.').fold(&mut *ours, |place, name| &mut place[name]);
                place[*field] = value;
            }
        }
    }
    if let Some(address) = settings.address("health.healthProbeBindAddress") {
        ours["http"]["bindAddress"] = address.into();
    }
    // Kueue always serves them.
    ours["webhooks"] = json!({});
    if let Some(address) = settings.host_and_port() {
        ours["webhooks"]["bindAddress"] = address.into();
    }
    let folder = settings.text("webhook.certDir").filter(|folder| !folder.is_empty());
    let managed = settings.0.get("internalCertManagement.enable") != Some(&json!(false));
    if !managed || folder.is_some() {
        settings.take("internalCertManagement.enable");
        // Where Kueue looks if it is not told (controller-runtime).
        let folder = folder.unwrap_or_else(|| "/tmp/k8s-webhook-server/serving-certs".into());
        let file = |name: &str| format!("{folder}/{name}");
        ours["webhooks"]["certificateFiles"] =
            json!({ "certificate": file("tls.crt"), "key": file("tls.key") });
    }
}

/// It is on when it is mentioned; before v1beta2 that had to be said, and it blocked then unless told otherwise.
fn wait_for_pods_ready(settings: &mut Settings, before: bool, ours: &mut Value) {
    const NAME: &str = "waitForPodsReady";
    let within = |path: &str| path.strip_prefix(NAME).is_some_and(|rest| rest.starts_with('.'));
    let on = match before {
        true => settings.0.get("waitForPodsReady.enable") == Some(&json!(true)),
        false => settings.0.get(NAME) == Some(&json!({})) || settings.0.keys().any(|path| within(path)),
    };
    if !on {
        return;
    }
    settings.take(NAME);
    settings.take("waitForPodsReady.enable");
    // Kueue's defaults, where ours are others or there is none.
    ours[NAME] =
        if before { json!({ "timeout": "5m", "blockAdmission": true }) } else { json!({ "timeout": "30m" }) };
    for field in ["timeout", "blockAdmission", "recoveryTimeout"] {
        if let Some(value) = settings.take(&format!("{NAME}.{field}")) {
            ours[NAME][field] = value;
        }
    }
    // So long a gang may also be without one of its pods, which is limited here in any case.
    let span = ours[NAME].get("recoveryTimeout").unwrap_or(&ours[NAME]["timeout"]).clone();
    if span != "0s" {
        ours["timeouts"]["recovery"] = span;
    }
    for field in ["timestamp", "backoffLimitCount", "backoffBaseSeconds", "backoffMaxSeconds"] {
        if let Some(value) = settings.take(&format!("{NAME}.requeuingStrategy.{field}")) {
            ours[NAME]["requeuingStrategy"][field] = value;
        }
    }
}

type Reason = (&'static str, Option<&'static str>, &'static str);

/// Why settings are not carried over: the path or what it begins with; the value, as JSON, with which
/// Kueue does as Soroi always does; the words. The longest path counts.
const REASONS: &[Reason] = &[
    ("admissionFairSharing", None, "admission fair sharing is not served yet"),
    ("clientConnection", None, "Soroi does not limit its rate; requests.inFlight bounds what is under way"),
    ("controller", None, "one loop does all the work"),
    ("featureGates", None, "Soroi has no gates: what it has is on"),
    (GRANULAR_REASONS, Some("false"), "reasons are those of Kueue 0.18"),
    ("gracefulShutdownTimeout", None, "a stop takes at most 15 s"),
    ("health", None, "they are /healthz and /readyz"),
    ("integrations.externalFrameworks", None, "only Jobs, PodGroups and pods are served"),
    ("integrations.frameworks", None, "Jobs, PodGroups and pods are always served, other kinds not yet"),
    ("integrations.labelKeysToCopy", None, "labels of Jobs are not copied"),
    ("integrations.podOptions", None, "pods are managed by PodGroup or scheduler name, in every namespace"),
    ("internalCertManagement", None, "webhooks.service and webhooks.secret have names of their own"),
    ("internalCertManagement.enable", Some("true"), "Soroi makes its own certificates"),
    ("leaderElection", None, "the lease has a name and namespace of its own"),
    ("leaderElection.leaderElect", Some("true"), "a leader is always elected"),
    ("leaderElection.renewDeadline", None, "a term lasts as long as its last renewal, no longer"),
    ("leaderElection.resourceLock", Some("\"leases\""), "it is a Lease"),
    ("manageJobsWithoutQueueName", Some("false"), "Jobs without a queue-name are left alone"),
    ("managedJobsNamespaceSelector", None, "Jobs without a queue-name are left alone in every namespace"),
    ("metrics", None, "metrics are served with health and readiness, at http.bindAddress"),
    ("metrics.enableClusterQueueResources", Some("true"), "usage of queues is always shown"),
    ("multiKueue", None, "several clusters are not served yet"),
    ("namespace", None, "Soroi has a namespace of its own: leaderElection.namespace"),
    ("objectRetentionPolicies", None, "they say nothing, so Workloads stay"),
    ("pprofBindAddress", None, "there is no such profile"),
    ("resources", None, "there is no such setting here"),
    ("resources.deviceClassMappings", None, "devices of resource claims are not charged to quota"),
    ("tls", None, "TLS 1.2 and 1.3, with the ciphers of rustls"),
    ("visibilityServer", None, "the visibility API is not served yet"),
    ("waitForPodsReady", None, "it is not enabled there"),
    ("webhook", None, "webhooks are served as webhooks says"),
];

fn reason(path: &str) -> Option<(Option<Value>, &'static str)> {
    let fits =
        |head: &str| path.strip_prefix(head).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    let found = REASONS.iter().filter(|(head, ..)| fits(head)).max_by_key(|(head, ..)| head.len())?;
    let same = found.1.map(|text| serde_json::from_str(text).expect("the table holds JSON"));
    Some((same, found.2))
}

#[cfg(test)]
mod tests;
