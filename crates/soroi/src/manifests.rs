//! Everything to install, as YAML: `soroi manifests | kubectl apply --server-side -f -`.
//!
//! Knows which objects there are and in which order they must come. What each of them says is known
//! by the modules below, and by those whose work it is (`soroi_api::crds`, `run::admission`).

mod access;
#[cfg(test)]
mod chart;
mod program;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use serde_json::{Map, Value, json};
use soroi_api::names;

use crate::run::webhooks::objects as webhooks;
use crate::run::{admission, config, install};

/// Whose the objects are.
pub(crate) const NAME: &str = "soroi";
/// Where Soroi runs, unless somebody says otherwise.
pub(crate) const NAMESPACE: &str = "soroi-system";
/// Where the published image is.
const IMAGE: &str = concat!("ghcr.io/soroi-dev/soroi:", env!("CARGO_PKG_VERSION"));
/// What a kubelet must be able to reach, on a port of our own choice.
const HTTP_BIND_ADDRESS: &str = "0.0.0.0:8081";

/// Arguments of `soroi manifests`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  soroi manifests | kubectl apply --server-side --force-conflicts -f -
      install, or upgrade to this version
  soroi manifests --namespace batch --image registry.local/soroi:1 --config soroi.yaml > install.yaml
      keep the manifest in a repository of yours, with your settings
  soroi manifests | kubectl delete --ignore-not-found -f -
      remove everything; before that, delete what uses it while Soroi still runs: jobs, Workloads,
      LocalQueues, ClusterQueues, ResourceFlavors, Topologies, in this order")]
pub(crate) struct Args {
    /// Where Soroi runs, and keeps its lease
    #[arg(long, default_value = NAMESPACE, value_name = "NAMESPACE", value_parser = namespace)]
    namespace: String,
    /// The image to run
    #[arg(long, default_value = IMAGE, value_name = "IMAGE", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    image: String,
    /// How many replicas: one leads, the others stand by
    #[arg(long, default_value_t = 2, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(1..=9))]
    replicas: u8,
    /// Settings: a `soroi.dev/v1alpha1` Configuration in YAML [default: those of an empty one]. With
    /// `webhooks: null` in it nothing is served over HTTPS: no validation, no v1beta1
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Who gives Jobs and pods their defaults: policies from Kubernetes 1.36 on, webhooks before
    #[arg(long, value_enum, default_value_t, value_name = "BY")]
    defaults: Defaults,
}

fn namespace(text: &str) -> Result<String, &'static str> {
    let problem =
        "a namespace is at most 63 lower case letters, digits and `-`, and begins and ends without `-`";
    if names::is_label(text) { Ok(text.to_owned()) } else { Err(problem) }
}

/// Who gives Jobs and pods their defaults when they are created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Defaults {
    /// The API server itself, by MutatingAdmissionPolicy objects
    #[default]
    Policies,
    /// Soroi, over HTTPS
    Webhooks,
}

/// What is to be installed.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) namespace: String,
    pub(crate) image: String,
    pub(crate) replicas: u8,
    pub(crate) defaults: Defaults,
    /// The Configuration as it stands in the ConfigMap.
    pub(crate) text: String,
    /// The same, read.
    pub(crate) configuration: config::Configuration,
}

/// Prints the manifest.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let settings = match &args.config {
        Some(path) => read(path)?,
        None => Map::new(),
    };
    let wanted = wanted(args, settings)
        .with_context(|| args.config.as_ref().map_or(String::new(), |path| path.display().to_string()))?;
    out.write_all(yaml(&objects(&wanted)?)?.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The fields of a Configuration, checked as `soroi run` checks them.
fn read(path: &Path) -> anyhow::Result<Map<String, Value>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    config::parse(&text).with_context(|| path.display().to_string())?;
    Ok(serde_saphyr::from_str(&text)?)
}

/// Completes the settings with what follows from running as a Deployment.
fn wanted(args: &Args, mut settings: Map<String, Value>) -> anyhow::Result<Wanted> {
    for fixed in ["apiVersion", "kind"] {
        settings.remove(fixed);
    }
    let mut complete = |group: &str, field: &str, value: &str| {
        let group = settings.entry(group).or_insert_with(|| json!({}));
        if let Some(group) = group.as_object_mut() {
            group.entry(field).or_insert_with(|| value.into());
        }
    };
    complete("http", "bindAddress", HTTP_BIND_ADDRESS);
    complete("leaderElection", "namespace", &args.namespace);
    settings.entry("webhooks").or_insert_with(|| json!({}));
    let body = serde_saphyr::to_string(&settings)?;
    let text = format!("apiVersion: {}\nkind: {}\n{body}", config::API_VERSION, config::KIND);
    let configuration = config::parse(&text)?;
    let election = &configuration.leader_election;
    ensure!(
        election.namespace == args.namespace,
        "leaderElection.namespace: must be that of --namespace ({}), not {}",
        args.namespace,
        election.namespace
    );
    ensure!(
        configuration.identity.is_none(),
        "identity: replicas of a Deployment have their own names; leave it out"
    );
    let address = configuration.http.bind_address;
    ensure!(
        !address.ip().is_loopback() && address.port() != 0,
        "http.bindAddress: {address} is not to be reached by a kubelet; use {HTTP_BIND_ADDRESS}"
    );
    check_webhooks(args, &configuration)?;
    Ok(Wanted {
        namespace: args.namespace.clone(),
        image: args.image.clone(),
        replicas: args.replicas,
        defaults: args.defaults,
        text,
        configuration,
    })
}

fn check_webhooks(args: &Args, configuration: &config::Configuration) -> anyhow::Result<()> {
    let Some(settings) = &configuration.webhooks else {
        ensure!(args.defaults == Defaults::Policies, "webhooks: --defaults webhooks needs them");
        return Ok(());
    };
    let address = settings.bind_address;
    ensure!(
        !address.ip().is_loopback() && address.port() != 0,
        "webhooks.bindAddress: {address} is not to be reached by an API server; use 0.0.0.0:9443"
    );
    ensure!(
        settings.service == NAME,
        "webhooks.service: must be {NAME}, the Service in this manifest, not {}",
        settings.service
    );
    Ok(())
}

/// All objects, each after those that it needs.
pub(crate) fn objects(wanted: &Wanted) -> anyhow::Result<Vec<Value>> {
    let mut objects = vec![program::namespace(wanted), program::priority_class()];
    let serves = wanted.configuration.webhooks.as_ref();
    let definitions = match serves {
        Some(settings) => webhooks::definitions(settings, &wanted.namespace),
        None => soroi_api::crds::all(),
    };
    for crd in definitions {
        objects.push(serde_json::to_value(crd)?);
    }
    objects.extend(access::objects(wanted));
    objects.extend(program::objects(wanted));
    let policies = wanted.defaults == Defaults::Policies;
    let mut rest = if policies { admission::objects() } else { Vec::new() };
    if let Some(settings) = serves {
        let account = install::account(&wanted.namespace);
        rest.extend(webhooks::configurations(settings, &wanted.namespace, policies, &account));
    }
    objects.extend(rest.into_iter().map(|(_, object)| object));
    Ok(objects)
}

/// Objects as a YAML stream.
pub(crate) fn yaml(objects: &[Value]) -> anyhow::Result<String> {
    let mut stream = String::new();
    for object in objects {
        stream.push_str("---\n");
        stream.push_str(serde_saphyr::to_string(object)?.trim_end());
        stream.push('\n');
    }
    Ok(stream)
}

/// `metadata` of an object of ours.
fn metadata(name: &str, namespace: Option<&str>) -> Value {
    let mut metadata = json!({ "name": name, "labels": labels() });
    if let Some(namespace) = namespace {
        metadata["namespace"] = namespace.into();
    }
    metadata
}

/// By these all objects of ours are found.
fn labels() -> Value {
    json!({ "app.kubernetes.io/name": NAME, admission::LABEL.0: admission::LABEL.1 })
}

#[cfg(test)]
mod tests;
