//! The lease of the Soroi that is inside the cluster.
//!
//! Where this cluster's server runs, its Soroi runs, so nobody may ever take over: the lease is held
//! for as long as one can be. A `soroi run` that is pointed at this cluster stands by, and says for whom.

use anyhow::Context as _;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, PostParams};
use serde_json::json;
use soroi_clock::Clock;

use crate::run::config::LeaderElection;

/// Who holds it.
const HOLDER: &str = "soroi-up";

/// Takes the lease of a cluster that is new.
pub(super) async fn take(
    client: &kube::Client,
    clock: &Clock,
    election: &LeaderElection,
) -> anyhow::Result<()> {
    let LeaderElection { namespace, name, .. } = election;
    let created = PostParams::default();
    let home = serde_json::from_value(json!({ "metadata": { "name": namespace } }))?;
    match Api::<Namespace>::all(client.clone()).create(&created, &home).await {
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        made => drop(made.with_context(|| format!("cannot make the namespace {namespace}"))?),
    }
    let now = format!("{:.6}", clock.now());
    let lease: Lease = serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": {
            "holderIdentity": HOLDER, "leaseDurationSeconds": i32::MAX, "leaseTransitions": 1,
            "acquireTime": now, "renewTime": now,
        },
    }))?;
    let leases = Api::<Lease>::namespaced(client.clone(), namespace);
    leases
        .create(&created, &lease)
        .await
        .with_context(|| format!("cannot take the lease {namespace}/{name}"))?;
    Ok(())
}
