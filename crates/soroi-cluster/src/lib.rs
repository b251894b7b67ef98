//! The rest of an embedded cluster: kubelets, Job controller, garbage collection, node lifecycle,
//! disruption budgets and a one-pod-at-a-time scheduler.
//!
//! [`run`] plays everything of a Kubernetes 1.36 cluster that is neither its API server nor Soroi,
//! through a [`kube::Client`]: it cannot tell an embedded API server from a real one, and on a
//! real control plane its kubelets alone are of use ([`Options::kubelets_only`]). Each part is a
//! level-triggered loop over what the watch has told, writes only when something has to change,
//! and takes its time from the [`Clock`]; on one thread under simulated time the same seed gives
//! the same run.
//!
//! Stories direct the simulated kubelets by annotations, see [`annotation`].
//!
//! This crate knows Kubernetes' own controllers. It must never know Kueue, Volcano or Soroi.

mod account;
pub mod annotation;
mod cache;
mod constraint;
mod disruption;
mod due;
mod events;
mod feed;
mod garbage;
mod groups;
mod job;
mod kubelet;
mod lifecycle;
mod need;
mod options;
mod scheduler;
mod seen;
mod write;

use std::sync::Arc;

use k8s_openapi::api::core::v1;
use soroi_clock::Clock;
use soroi_watch::{Query, SplitMix64};
use tokio::task::JoinSet;

pub use options::{Options, Parts};

use feed::Feed;
use write::Api;

/// Runs the parts of a cluster that `options` name, for ever. Dropping the future stops them all.
pub async fn run(client: kube::Client, clock: Clock, options: Options) {
    let options = Arc::new(options);
    let mut random = SplitMix64::new(options.seed);
    let api = Api::new(client.clone(), clock.clone());
    let mut pods = Feed::new(Query::all::<v1::Pod>());
    let mut nodes = Feed::new(Query::all::<v1::Node>());
    let mut parts = JoinSet::new();
    if options.parts.kubelets {
        let (pods, nodes) = (pods.listen(), nodes.listen());
        parts.spawn(kubelet::run(api.clone(), clock.clone(), options.clone(), pods, nodes));
    }
    if options.parts.jobs {
        let (seed, pods) = (random.next_u64(), pods.listen());
        parts.spawn(job::run(api.clone(), client.clone(), clock.clone(), options.clone(), seed, pods));
    }
    if options.parts.lifecycle {
        let (seed, pods, nodes) = (random.next_u64(), pods.listen(), nodes.listen());
        parts.spawn(lifecycle::run(
            api.clone(),
            client.clone(),
            clock.clone(),
            options.clone(),
            seed,
            pods,
            nodes,
        ));
    }
    if options.parts.scheduler {
        let (pods, nodes) = (pods.listen(), nodes.listen());
        parts.spawn(scheduler::run(api.clone(), clock.clone(), pods, nodes));
    }
    if options.parts.garbage {
        let seed = random.next_u64();
        parts.spawn(garbage::run(api.clone(), client.clone(), clock.clone(), seed));
    }
    if options.parts.accounts {
        let seed = random.next_u64();
        parts.spawn(account::run(api.clone(), client.clone(), clock.clone(), seed));
    }
    let (pod_seed, node_seed) = (random.next_u64(), random.next_u64());
    if options.parts.disruptions {
        let (seed, pods) = (random.next_u64(), pods.listen());
        parts.spawn(disruption::run(api.clone(), client.clone(), clock.clone(), seed, pods));
    }
    if nodes.wanted() {
        parts.spawn(nodes.run(client.clone(), clock.clone(), node_seed));
    }
    if pods.wanted() {
        parts.spawn(pods.run(client, clock, pod_seed));
    }
    // No part ends by itself, so the first end is a bug in one: let whoever runs us see it.
    while let Some(ended) = parts.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

#[cfg(test)]
mod story;
#[cfg(test)]
mod tests;
