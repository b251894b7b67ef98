//! What must change, in which order? A pure function of what was seen.
//!
//! The order keeps the cluster usable at every step. First goes what answers for nobody and blocks
//! everybody (admission, aggregated APIs); only then can the objects be written. An object is stored
//! anew before its definition stops knowing the version that it was stored in.
//!
//! Knows what Kueue 0.18 and Volcano 1.15 leave on a cluster. Must never read or write one.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;
use soroi_api::labels::kueue;

use super::look::{DEFINITIONS, PODS, Seen, services, stored_version};
use super::object::{list, name, path, place, text};
use super::unserved::{self, Unserved};
use crate::run::install::is_foreign;

/// The API of Kueue that lists pending workloads; served by its manager.
const VISIBILITY: &str = "visibility.kueue.x-k8s.io";

/// What an adoption would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Why it is not possible now.
    pub(super) blocked: Vec<String>,
    /// What is done, in this order.
    pub(super) steps: Vec<Step>,
    /// What is used and not served afterwards.
    pub(super) unserved: Vec<Unserved>,
}

/// A change. Each may be made again after it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// An object that answers for nobody is removed.
    Remove { kind: String, name: String, path: String, why: String },
    /// Objects are written as they are, so that they are stored in the version that stays.
    StoreAnew { definition: String, version: String, paths: Vec<String> },
    /// A definition becomes ours.
    Replace { definition: String, version: String, no_longer: Vec<String>, converted: bool },
    /// A finalizer that nobody serves any more is taken off.
    LetGo { kind: &'static str, place: String, path: String, finalizer: &'static str },
}

/// Makes the plan.
///
/// # Errors
/// A definition that is none.
pub(super) fn plan(seen: &Seen) -> anyhow::Result<Plan> {
    let mut plan = Plan { unserved: unserved::unserved(seen), ..Plan::default() };
    for (who, lease) in &seen.live {
        plan.blocked.push(format!("{who} is live: it holds the lease {lease}; stop it first"));
    }
    for webhook in &seen.webhooks {
        admission(&mut plan, seen, webhook);
    }
    for service in &seen.api_services {
        if text(service, "/spec/group") == VISIBILITY && !service["spec"]["service"].is_null() {
            let why = "its API was served by Kueue's manager";
            let base = "/apis/apiregistration.k8s.io/v1";
            plan.steps.push(remove(service, path(base, "apiservices", service), why.to_owned()));
        }
    }
    let ours = soroi_api::crds::all();
    for definition in &seen.definitions {
        if let Some(ours) = ours.iter().find(|one| one.metadata.name.as_deref() == Some(name(definition))) {
            define(&mut plan, seen, definition, ours)?;
        }
    }
    for pod in seen.of(PODS) {
        if list(pod, "/metadata/finalizers").iter().any(|one| one == kueue::MANAGED) {
            let (place, path) = (place(pod), path("/api/v1", "pods", pod));
            plan.steps.push(Step::LetGo { kind: "Pod", place, path, finalizer: kueue::MANAGED });
        }
    }
    Ok(plan)
}

/// A webhook configuration is Kueue's if it asks Kueue's handlers of its own kinds, and Volcano's if
/// it names its hooks as Volcano does; both call a service in the cluster.
fn product(webhook: &Value) -> Option<&'static str> {
    let is_kueues = |hook: &Value| {
        let path = text(hook, "/clientConfig/service/path");
        ["/mutate-kueue-x-k8s-io-", "/validate-kueue-x-k8s-io-"].iter().any(|start| path.starts_with(start))
    };
    let is_volcanos = |hook: &Value| {
        !hook["clientConfig"]["service"].is_null() && text(hook, "/name").ends_with(".volcano.sh")
    };
    let hooks = list(webhook, "/webhooks");
    if hooks.iter().any(is_kueues) {
        Some("Kueue")
    } else if hooks.iter().any(is_volcanos) {
        Some("Volcano")
    } else {
        None
    }
}

fn admission(plan: &mut Plan, seen: &Seen, webhook: &Value) {
    let Some(product) = product(webhook) else { return };
    let kind = text(webhook, "/kind");
    let services = services(std::slice::from_ref(webhook));
    if let Some(service) = services.iter().find(|service| seen.answering.contains(*service)) {
        let which = format!("{kind} {}", name(webhook));
        plan.blocked.push(format!(
            "{product}'s admission is live: the service {service} of {which} has endpoints; stop it first"
        ));
    }
    let base = "/apis/admissionregistration.k8s.io/v1";
    let path = path(base, &format!("{}s", kind.to_lowercase()), webhook);
    let service: Vec<&str> = services.iter().map(String::as_str).collect();
    plan.steps.push(remove(webhook, path, format!("it calls {product} at {}", service.join(", "))));
}

fn remove(object: &Value, path: String, why: String) -> Step {
    Step::Remove { kind: text(object, "/kind").to_owned(), name: name(object).to_owned(), path, why }
}

/// What a definition of the same name as ours needs.
fn define(
    plan: &mut Plan,
    seen: &Seen,
    definition: &Value,
    ours: &CustomResourceDefinition,
) -> anyhow::Result<()> {
    let theirs: CustomResourceDefinition = serde_json::from_value(definition.clone())?;
    if !is_foreign(&theirs) {
        return Ok(());
    }
    let name = name(definition);
    let wanted = ours.spec.versions.first().map(|version| version.name.as_str()).unwrap_or_default();
    let stored = stored_version(definition);
    if stored != wanted {
        plan.blocked.push(format!(
            "{name} stores {stored}, and Soroi serves {wanted}: upgrade to a release that stores {wanted} first \
             (Kueue 0.18, Volcano 1.15)"
        ));
        return Ok(());
    }
    let once = list(definition, "/status/storedVersions").iter().filter_map(Value::as_str);
    let once: Vec<&str> = once.filter(|version| *version != wanted).collect();
    if let Some(Err(why)) = seen.objects.get(name) {
        plan.blocked.push(format!(
            "{name} cannot be read ({why}); stored versions: {wanted}{}: start the product that converts \
             between them, `kubectl get {name} -A -o json | kubectl replace -f -`, and stop it again",
            once.iter().map(|version| format!(", {version}")).collect::<String>()
        ));
        return Ok(());
    }
    if !once.is_empty() {
        let base = format!("/apis/{}/{wanted}", ours.spec.group);
        let paths = seen.of(name).iter().map(|object| path(&base, &ours.spec.names.plural, object)).collect();
        let (definition, version) = (name.to_owned(), wanted.to_owned());
        plan.steps.push(Step::StoreAnew { definition, version, paths });
    }
    let served = theirs.spec.versions.iter().filter(|version| version.served && version.name != wanted);
    plan.steps.push(Step::Replace {
        definition: name.to_owned(),
        version: wanted.to_owned(),
        no_longer: served.map(|version| version.name.clone()).collect(),
        converted: theirs.spec.conversion.is_some_and(|conversion| conversion.strategy == "Webhook"),
    });
    Ok(())
}

/// The path of a definition.
pub(super) fn definition_path(name: &str) -> String {
    format!("{DEFINITIONS}/{name}")
}
