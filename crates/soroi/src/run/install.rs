//! What Soroi needs on a cluster: resource definitions, the namespace of its lease, admission
//! policies.
//!
//! Knows what is to be there. What another product has installed is never overwritten: taking that
//! over is a step of its own.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};
use soroi_clock::Clock;

use super::admission;
use super::apply::{apply, get};
use super::config::Configuration;
use super::webhooks::objects;

/// How long the API server may take to serve a definition that it has accepted.
const SERVED_MAX: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Creates what is missing and updates what is ours.
///
/// # Errors
/// What the API server refused, or a definition of another product that does not serve what we need.
pub(crate) async fn install(
    client: &kube::Client,
    clock: &Clock,
    configuration: &Configuration,
) -> anyhow::Result<()> {
    let namespace = configuration.leader_election.namespace.as_str();
    let definitions = match &configuration.webhooks {
        Some(webhooks) => objects::definitions(webhooks, namespace),
        None => soroi_api::crds::all(),
    };
    for crd in definitions {
        define(client, &crd).await?;
    }
    let policies = prepare(client, namespace).await?;
    if let Some(webhooks) = &configuration.webhooks {
        for (path, object) in objects::configurations(webhooks, namespace, policies, &account(namespace)) {
            apply(client, &path, &object).await?;
        }
    }
    for crd in soroi_api::crds::all() {
        served(client, clock, &crd).await?;
    }
    tracing::info!("what Soroi needs on the cluster is in place");
    Ok(())
}

/// The part that may stand beside another product: a namespace and admission policies. Says whether
/// the API server serves such.
///
/// # Errors
/// What the API server refused.
pub(crate) async fn prepare(client: &kube::Client, namespace: &str) -> anyhow::Result<bool> {
    let path = format!("/api/v1/namespaces/{namespace}");
    if get::<Value>(client, &path).await?.is_none() {
        let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
        apply(client, &path, &object).await?;
    }
    let policies = admission::are_served(client).await?;
    if policies {
        for (path, object) in admission::objects() {
            apply(client, &path, &object).await?;
        }
    }
    Ok(policies)
}

/// The account that `soroi manifests` installs.
pub(crate) fn account(namespace: &str) -> String {
    format!("system:serviceaccount:{namespace}:{}", objects::NAME)
}

fn name(crd: &CustomResourceDefinition) -> &str {
    crd.metadata.name.as_deref().unwrap_or_default()
}

async fn define(client: &kube::Client, crd: &CustomResourceDefinition) -> anyhow::Result<()> {
    let name = name(crd);
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
    if let Some(there) = get::<CustomResourceDefinition>(client, &path).await? {
        if is_foreign(&there) {
            tracing::info!(name, "the definition of another product is left as it is");
            return Ok(());
        }
        if serves_more(&there, crd) {
            tracing::info!(
                name,
                "the definition serves more versions than these settings need: left as it is"
            );
            return Ok(());
        }
    }
    apply(client, &path, &serde_json::to_value(crd)?).await?;
    Ok(())
}

/// It serves all that ours would, and another version besides: whoever installed that has clients for
/// it, and a start with fewer settings is no reason to take it away.
fn serves_more(there: &CustomResourceDefinition, ours: &CustomResourceDefinition) -> bool {
    let served = |crd: &CustomResourceDefinition| -> BTreeSet<String> {
        crd.spec.versions.iter().filter(|one| one.served).map(|one| one.name.clone()).collect()
    };
    let (there, ours) = (served(there), served(ours));
    there.len() > ours.len() && there.is_superset(&ours)
}

/// Made by the generator that Kueue and Volcano use (it leaves its version), or converted by a
/// webhook that is not ours.
pub(crate) fn is_foreign(crd: &CustomResourceDefinition) -> bool {
    let generated = crd.metadata.annotations.iter().flatten();
    let converted = crd.spec.conversion.as_ref().is_some_and(|conversion| conversion.strategy == "Webhook");
    let ours =
        crd.metadata.labels.iter().flatten().any(|(key, value)| (&**key, &**value) == admission::LABEL);
    (converted && !ours)
        || generated.into_iter().any(|(key, _)| key.starts_with("controller-gen.kubebuilder.io/"))
}

/// Waits until the objects of a definition can be listed.
pub(crate) async fn served(
    client: &kube::Client,
    clock: &Clock,
    crd: &CustomResourceDefinition,
) -> anyhow::Result<()> {
    let version = crd.spec.versions.first().map(|version| version.name.as_str()).unwrap_or_default();
    let path = format!("/apis/{}/{version}/{}?limit=1", crd.spec.group, crd.spec.names.plural);
    let listed = async {
        loop {
            match get::<Value>(client, &path).await {
                Ok(Some(_)) => return Ok(()),
                Ok(None) => clock.sleep(LOOK_EVERY).await,
                Err(error) => return Err(error).with_context(|| format!("cannot list {path}")),
            }
        }
    };
    match clock.timeout(SERVED_MAX, listed).await {
        Ok(listed) => listed,
        Err(_) => bail!("the API server does not serve {version} of {}", name(crd)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::config::Webhooks;

    #[test]
    fn a_definition_that_serves_old_clients_too_is_not_taken_back() {
        let converted = objects::definitions(&Webhooks::default(), "soroi-system");
        let mut more = 0;
        for (plain, full) in soroi_api::crds::all().iter().zip(&converted) {
            assert_eq!(name(plain), name(full));
            assert!(!serves_more(plain, full) && !serves_more(full, full), "{}", name(full));
            more += usize::from(serves_more(full, plain));
        }
        // Those of Kueue have an older version.
        assert!(more > 0);
    }

    #[test]
    fn definitions_of_others_are_known_by_their_generator_and_conversion() {
        let converted = objects::definitions(&Webhooks::default(), "soroi-system");
        for mut crd in soroi_api::crds::all().into_iter().chain(converted) {
            assert!(!is_foreign(&crd), "{}", name(&crd));
            let annotations = crd.metadata.annotations.get_or_insert_default();
            annotations.insert("controller-gen.kubebuilder.io/version".into(), "v0.20.1".into());
            assert!(is_foreign(&crd), "{}", name(&crd));
        }
        for mut crd in objects::definitions(&Webhooks::default(), "soroi-system") {
            crd.metadata.labels = None;
            assert_eq!(is_foreign(&crd), crd.spec.group == soroi_api::kueue::GROUP, "{}", name(&crd));
        }
    }
}
