//! What is configured? `soroi.dev/v1alpha1` Configuration, read strictly: a field that nobody knows
//! is a mistake in spelling, and is named.
//!
//! Knows the file. Every field is used; its default suits a cluster that nothing is known of.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde::{Deserialize, Deserializer};
use soroi_api::names;
use soroi_control::config::Dialect;
use soroi_engine::decision::Settings;
use soroi_engine::event::Policy;
use soroi_engine::preempt::FairRule;

mod ready;
mod resources;
mod retention;

use ready::WaitForPodsReady;
use resources::Resources;
use retention::ObjectRetentionPolicies;

/// Of the file.
pub(crate) const API_VERSION: &str = "soroi.dev/v1alpha1";
/// Of the file.
pub(crate) const KIND: &str = "Configuration";

/// The file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    api_version: String,
    kind: String,
    #[serde(flatten)]
    configuration: serde_json::Map<String, serde_json::Value>,
}

/// All settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Configuration {
    /// The placement policy of queues that name none.
    pub(crate) placement: Placement,
    /// How places are chosen among those that do, for gangs of queues that do not say.
    pub(crate) packing: Packing,
    /// Time-outs of gangs.
    pub(crate) timeouts: Timeouts,
    /// The pause after an admission that had to be taken back.
    pub(crate) undo_backoff: UndoBackoff,
    /// How long pods may take to be ready; left out, as long as they like.
    pub(crate) wait_for_pods_ready: Option<WaitForPodsReady>,
    /// Fair sharing between queues of a cohort; left out, it is off.
    pub(crate) fair_sharing: Option<FairSharing>,
    /// What pods charge to quota; left out, what they ask for.
    pub(crate) resources: Resources,
    /// How long Workloads stay that nobody needs any more; left out, for ever.
    pub(crate) object_retention_policies: ObjectRetentionPolicies,
    /// Requests to the API server.
    pub(crate) requests: Requests,
    /// How this replica is called in events and in the lease; the host name by default.
    pub(crate) identity: Option<String>,
    /// What others expect of what Soroi writes.
    pub(crate) compat: Compat,
    /// How one replica is elected.
    pub(crate) leader_election: LeaderElection,
    /// Where health, readiness and metrics are served.
    pub(crate) http: Http,
    /// Admission and conversion over HTTPS; left out, they are not served.
    pub(crate) webhooks: Option<Webhooks>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Compat {
    /// The Kueue whose reasons conditions and events of Workloads have.
    reasons: Reasons,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
enum Reasons {
    #[default]
    #[serde(rename = "0.18")]
    Kueue018,
    #[serde(rename = "0.19")]
    Kueue019,
}

impl From<Reasons> for Dialect {
    fn from(reasons: Reasons) -> Self {
        match reasons {
            Reasons::Kueue018 => Self::Kueue018,
            Reasons::Kueue019 => Self::Kueue019,
        }
    }
}

/// As in `soroi.dev/placement`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(crate) enum Placement {
    #[default]
    Unified,
    TopologyOnly,
    AfterAdmission,
    QuotaOnly,
}

/// As in `soroi.dev/packing`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Packing {
    #[default]
    BestFit,
    Fragmentation,
    Spread,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct FairSharing {
    /// When gangs of other queues may be preempted: the second is tried where the first does not suffice.
    preemption_strategies: Vec<Strategy>,
}

/// As in Kueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum Strategy {
    LessThanOrEqualToFinalShare,
    LessThanInitialShare,
}

impl Default for FairSharing {
    fn default() -> Self {
        use Strategy::{LessThanInitialShare, LessThanOrEqualToFinalShare};
        Self { preemption_strategies: vec![LessThanOrEqualToFinalShare, LessThanInitialShare] }
    }
}

impl FairSharing {
    fn rules(&self) -> Vec<FairRule> {
        let rule = |strategy: &Strategy| match strategy {
            Strategy::LessThanOrEqualToFinalShare => FairRule::LessThanOrEqualToFinalShare,
            Strategy::LessThanInitialShare => FairRule::LessThanInitialShare,
        };
        self.preemption_strategies.iter().map(rule).collect()
    }

    /// Kueue's own rule (`validateFairSharing`, 0.18).
    fn check(&self) -> anyhow::Result<()> {
        use Strategy::{LessThanInitialShare, LessThanOrEqualToFinalShare};
        ensure!(
            [
                &[LessThanOrEqualToFinalShare][..],
                &[LessThanInitialShare],
                &[LessThanOrEqualToFinalShare, LessThanInitialShare],
            ]
            .contains(&self.preemption_strategies.as_slice()),
            "fairSharing.preemptionStrategies: must be LessThanOrEqualToFinalShare, LessThanInitialShare, or both \
             in this order"
        );
        Ok(())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Timeouts {
    /// How long members of a released gang may be missing, counted from the last one that came.
    #[serde(deserialize_with = "duration")]
    start: Duration,
    /// How long a gang may be bound below its minimum before it was whole.
    #[serde(deserialize_with = "duration")]
    gather: Duration,
    /// The same after it was whole.
    #[serde(deserialize_with = "duration")]
    recovery: Duration,
    /// How long a pod on an unreachable node keeps its quota.
    #[serde(deserialize_with = "duration")]
    dead_pod: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct UndoBackoff {
    /// The first pause; doubles each time.
    #[serde(deserialize_with = "duration")]
    min: Duration,
    /// The longest one.
    #[serde(deserialize_with = "duration")]
    max: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Requests {
    /// How long one may take before its outcome counts as unknown.
    #[serde(deserialize_with = "duration")]
    pub(crate) timeout: Duration,
    /// How many writes may be under way at once.
    in_flight: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct LeaderElection {
    /// The namespace of the lease.
    pub(crate) namespace: String,
    /// The name of the lease.
    pub(crate) name: String,
    /// How long a renewal of the lease lasts.
    #[serde(deserialize_with = "duration")]
    pub(crate) lease_duration: Duration,
    /// How often the lease is renewed.
    #[serde(deserialize_with = "duration")]
    pub(crate) renew_every: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Http {
    /// Address and port; port 0 takes a free one.
    pub(crate) bind_address: SocketAddr,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Webhooks {
    /// Address and port; port 0 takes a free one.
    pub(crate) bind_address: SocketAddr,
    /// The Service, in the lease's namespace, by which the API server reaches us.
    pub(crate) service: String,
    /// Instead of the Service: `https://` and host, for a Soroi outside of the cluster.
    pub(crate) url: Option<String>,
    /// The Secret, in the lease's namespace, with our own certificate authority.
    pub(crate) secret: String,
    /// How long a certificate of that authority is valid; it is renewed when a third is left.
    #[serde(deserialize_with = "duration")]
    pub(crate) certificate_lifetime: Duration,
    /// Instead of our own authority: files that somebody else keeps up to date.
    pub(crate) certificate_files: Option<CertificateFiles>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CertificateFiles {
    /// The certificate and what lies between it and its authority, PEM.
    pub(crate) certificate: PathBuf,
    /// Its key, PEM.
    pub(crate) key: PathBuf,
    /// The authorities, PEM, for `caBundle`; left out, somebody else writes that.
    pub(crate) authority: Option<PathBuf>,
}

impl Default for Timeouts {
    fn default() -> Self {
        let settings = Settings::default();
        let span = |millis: i64| Duration::from_millis(millis.unsigned_abs());
        Self {
            start: span(settings.start_timeout),
            gather: span(settings.gather_timeout),
            recovery: span(settings.recovery_timeout),
            dead_pod: span(settings.dead_pod_timeout),
        }
    }
}

impl Default for UndoBackoff {
    fn default() -> Self {
        let settings = Settings::default();
        let span = |millis: i64| Duration::from_millis(millis.unsigned_abs());
        Self { min: span(settings.undo_backoff_min), max: span(settings.undo_backoff_max) }
    }
}

impl Default for Requests {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(5), in_flight: soroi_control::Config::default().writes_in_flight }
    }
}

impl Default for LeaderElection {
    /// Kubernetes' own components hold their leases as long and renew them as often.
    fn default() -> Self {
        Self {
            namespace: "soroi-system".into(),
            name: "soroi".into(),
            lease_duration: Duration::from_secs(15),
            renew_every: Duration::from_secs(2),
        }
    }
}

impl Default for Http {
    fn default() -> Self {
        Self { bind_address: SocketAddr::from(([127, 0, 0, 1], 8081)) }
    }
}

impl Default for Webhooks {
    fn default() -> Self {
        Self {
            bind_address: SocketAddr::from(([0, 0, 0, 0], 9443)),
            service: "soroi".into(),
            url: None,
            secret: "soroi-webhooks".into(),
            certificate_lifetime: Duration::from_hours(90 * 24),
            certificate_files: None,
        }
    }
}

impl Webhooks {
    /// The names under which the API server connects.
    pub(crate) fn names(&self, namespace: &str) -> anyhow::Result<Vec<String>> {
        let Some(url) = &self.url else {
            let name = format!("{}.{namespace}.svc", self.service);
            return Ok(vec![format!("{name}.cluster.local"), name]);
        };
        let uri: http::Uri = url.parse().context("webhooks.url")?;
        let host = uri.host().context("webhooks.url: has no host")?;
        Ok(vec![host.trim_matches(['[', ']']).to_owned()])
    }

    /// Whether we tell the API server by whom our certificate is signed.
    pub(crate) fn publishes(&self) -> bool {
        self.certificate_files.as_ref().is_none_or(|files| files.authority.is_some())
    }

    fn check(&self, namespace: &str) -> anyhow::Result<()> {
        if let Some(url) = &self.url {
            let host = url.strip_prefix("https://").unwrap_or_default();
            ensure!(
                !host.is_empty() && !host.contains('/'),
                "webhooks.url: must be https:// and a host, with its port if not 443, not {url:?}"
            );
        }
        self.names(namespace)?;
        ensure!(!self.service.is_empty(), "webhooks.service: must not be empty");
        ensure!(!self.secret.is_empty(), "webhooks.secret: must not be empty");
        ensure!(
            self.certificate_lifetime >= LIFETIME_MIN,
            "webhooks.certificateLifetime: must be at least {} s",
            LIFETIME_MIN.as_secs()
        );
        Ok(())
    }
}

/// Shorter, and a certificate could expire while replicas tell each other of the next one.
const LIFETIME_MIN: Duration = Duration::from_secs(15);

impl Configuration {
    /// What the control side is told.
    pub(crate) fn control(&self, epoch: i64, serve_volcano: bool, identity: &str) -> soroi_control::Config {
        let Timeouts { start, gather, recovery, dead_pod } = &self.timeouts;
        soroi_control::Config {
            settings: Settings {
                placement: self.placement.into(),
                packing: match self.packing {
                    Packing::BestFit => soroi_engine::packing::Packing::BestFit,
                    Packing::Fragmentation => soroi_engine::packing::Packing::Fragmentation,
                    Packing::Spread => soroi_engine::packing::Packing::Spread,
                },
                start_timeout: millis(*start),
                gather_timeout: millis(*gather),
                recovery_timeout: millis(*recovery),
                dead_pod_timeout: millis(*dead_pod),
                undo_backoff_min: millis(self.undo_backoff.min),
                undo_backoff_max: millis(self.undo_backoff.max),
                ignore_undeclared: self.resources.ignores_undeclared(),
                fair_sharing: self.fair_sharing.as_ref().map(FairSharing::rules),
                block_admission: self.wait_for_pods_ready.as_ref().is_some_and(|wait| wait.block_admission),
            },
            charging: self.resources.charging(),
            retention: self.object_retention_policies.retention(),
            epoch,
            serve_volcano,
            instance: identity.to_owned(),
            // Replicas that retry must not do so in step.
            seed: epoch.unsigned_abs(),
            writes_in_flight: self.requests.in_flight,
            wait_for_pods_ready: self.wait_for_pods_ready.as_ref().map(WaitForPodsReady::rules),
            request_timeout_ms: millis(self.requests.timeout).unsigned_abs(),
            dialect: self.compat.reasons.into(),
            ..soroi_control::Config::default()
        }
    }

    /// What no single field can say.
    fn check(&self) -> anyhow::Result<()> {
        let LeaderElection { namespace, name, lease_duration, renew_every } = &self.leader_election;
        for (field, value) in [("namespace", namespace), ("name", name)] {
            ensure!(!value.is_empty(), "leaderElection.{field}: must not be empty");
            ensure!(
                names::is_label(value),
                "leaderElection.{field}: {value:?} is no name: up to 63 lower-case letters, digits and '-', which \
                 starts and ends with a letter or digit"
            );
        }
        ensure!(
            lease_duration.subsec_nanos() == 0 && lease_duration.as_secs() > 0,
            "leaderElection.leaseDuration: must be whole seconds, and at least one"
        );
        ensure!(!renew_every.is_zero(), "leaderElection.renewEvery: must be longer than nothing");
        ensure!(
            renew_every.saturating_mul(2) < *lease_duration,
            "leaderElection.renewEvery: must be less than half of leaseDuration"
        );
        ensure!(!self.requests.timeout.is_zero(), "requests.timeout: must be longer than nothing");
        ensure!(
            self.requests.timeout < *lease_duration,
            "requests.timeout: must be less than leaderElection.leaseDuration"
        );
        ensure!(self.requests.in_flight > 0, "requests.inFlight: must be at least 1");
        if let Some(fair_sharing) = &self.fair_sharing {
            fair_sharing.check()?;
        }
        if let Some(wait) = &self.wait_for_pods_ready {
            wait.check()?;
        }
        self.resources.check()?;
        if let Some(webhooks) = &self.webhooks {
            webhooks.check(namespace)?;
        }
        ensure!(self.undo_backoff.min <= self.undo_backoff.max, "undoBackoff.min: must not exceed max");
        Ok(())
    }
}

impl From<Placement> for Policy {
    fn from(placement: Placement) -> Self {
        match placement {
            Placement::Unified => Self::Unified,
            Placement::TopologyOnly => Self::TopologyOnly,
            Placement::AfterAdmission => Self::AfterAdmission,
            Placement::QuotaOnly => Self::QuotaOnly,
        }
    }
}

/// Reads a file.
///
/// # Errors
/// With the file's name and the field that is wrong.
pub(crate) fn read(path: &Path) -> anyhow::Result<Configuration> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&text).with_context(|| format!("{} is no {API_VERSION} {KIND}", path.display()))
}

/// Reads the text of a file.
///
/// # Errors
/// With the field that is wrong.
pub(crate) fn parse(text: &str) -> anyhow::Result<Configuration> {
    let file: File = serde_saphyr::from_str(text)?;
    if file.api_version != API_VERSION {
        bail!("apiVersion: must be {API_VERSION}, not {:?}", file.api_version);
    }
    if file.kind != KIND {
        bail!("kind: must be {KIND}, not {:?}", file.kind);
    }
    let settings = serde_json::Value::Object(file.configuration);
    let configuration: Configuration = serde_path_to_error::deserialize(settings).map_err(|error| {
        let path = error.path().to_string();
        // At the top there is no path worth the name.
        let path = if path == "." { String::new() } else { format!("{path}: ") };
        anyhow::anyhow!("{path}{}", error.into_inner())
    })?;
    configuration.check()?;
    Ok(configuration)
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// A span that may be left out.
fn some_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    duration(deserializer).map(Some)
}

/// As Kubernetes writes spans of time: `90s`, `1m30s`, `500ms`.
fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a span of time such as 90s or 1m30s")]
    enum Written {
        Text(String),
        Number(f64),
    }
    let text = match Written::deserialize(deserializer)? {
        Written::Text(text) => text,
        Written::Number(number) => {
            return Err(serde::de::Error::custom(format!(
                "{number} has no unit: write {number}s for seconds"
            )));
        }
    };
    let refused = |why: &str| Err(serde::de::Error::custom(format!("{text:?} {why}")));
    let Some(seconds) = seconds(text.strip_prefix(['-', '+']).unwrap_or(&text)) else {
        return refused("is no span of time such as 90s or 1m30s");
    };
    if text.starts_with('-') {
        return refused("is negative");
    }
    match Duration::try_from_secs_f64(seconds) {
        Ok(span) if span <= SPAN_MAX => Ok(span),
        _ => refused("is longer than ten years"),
    }
}

/// Longest span: far beyond every use, and short enough that sums of spans are spans.
const SPAN_MAX: Duration = Duration::from_hours(10 * 366 * 24);

/// A span as Go writes it (`time.ParseDuration`): numbers, each with a unit.
fn seconds(text: &str) -> Option<f64> {
    let mut rest = text;
    let mut sum = 0.0;
    while !rest.is_empty() {
        let (number, tail) = rest.split_at(rest.find(|letter: char| !matches!(letter, '0'..='9' | '.'))?);
        let (unit, tail) = tail.split_at(
            tail.find(['.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']).unwrap_or(tail.len()),
        );
        let unit = match unit {
            "ns" => 1e-9,
            "us" | "\u{b5}s" | "\u{3bc}s" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3_600.0,
            _ => return None,
        };
        sum += number.parse::<f64>().ok()? * unit;
        rest = tail;
    }
    (!text.is_empty()).then_some(sum)
}

#[cfg(test)]
mod tests;
