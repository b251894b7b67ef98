//! Which queues, which Workloads, when? Kueue's published load (0.18, `test/performance/scheduler`,
//! `generator.yaml` of each configuration), as numbers and as objects.

use std::time::Duration;

use clap::ValueEnum;
use serde_json::{Value, json};
use soroi_engine::event::Policy;

/// Objects of the load carry this label.
pub(super) const LABEL: &str = "soroi.dev/bench=load";
const KUEUE: &str = "/apis/kueue.x-k8s.io/v1beta2";
const RACK: &str = "cloud.provider.com/topology-rack";
const BLOCK: &str = "cloud.provider.com/topology-block";
const HOST: &str = "kubernetes.io/hostname";
const GROUP_LABEL: &str = "tas-node-group";
const RACKS: u32 = 10;
const NODES_PER_RACK: u32 = 64;

/// A configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    /// 5 cohorts of 6 queues, 15,000 Workloads; only quota
    Baseline,
    /// The same on 640 nodes in 10 racks, a third each required, preferred and in slices by rack
    Topology,
    /// 10 cohorts of 100 queues, 50,000 Workloads; only quota
    Large,
}

/// How many of what.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) shape: Shape,
    cohorts: u32,
    queues: u32,
    pub(super) classes: Vec<Class>,
}

/// Workloads that are alike, of one queue.
#[derive(Clone, Debug)]
pub(super) struct Class {
    /// `small`, `medium` or `large`.
    pub(super) name: &'static str,
    variant: Option<Variant>,
    pub(super) count: u32,
    pub(super) every: Duration,
    pub(super) runs: Duration,
    priority: i32,
    pods: u32,
    cpu_milli: u32,
}

/// Where the pods of a Workload have to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    Required,
    Preferred,
    Slices(u32),
}

/// An object and the collection that it is created in.
pub(super) type Made = (String, Value);

impl Plan {
    /// A configuration, with every count of Workloads divided by `shrink`.
    pub(super) fn new(shape: Shape, shrink: u32) -> Self {
        let class = |name, variant, count: u32, [every, runs]: [u64; 2], priority, pods, cpu_milli| Class {
            name,
            variant,
            count: (count / shrink).max(1),
            every: Duration::from_millis(every),
            runs: Duration::from_millis(runs),
            priority,
            pods,
            cpu_milli,
        };
        let quota = |small: (u32, [u64; 2]), medium: (u32, [u64; 2]), large: (u32, [u64; 2])| {
            vec![
                class("small", None, small.0, small.1, 50, 1, 1_000),
                class("medium", None, medium.0, medium.1, 100, 1, 5_000),
                class("large", None, large.0, large.1, 200, 1, 20_000),
            ]
        };
        let (cohorts, queues, classes) = match shape {
            Shape::Baseline => (5, 6, quota((350, [100, 200]), (100, [500, 500]), (50, [1_200, 1_000]))),
            Shape::Large => (10, 100, quota((35, [60, 150]), (11, [300, 350]), (4, [700, 700]))),
            Shape::Topology => {
                let sizes = [
                    ("small", [120, 120, 110], [100, 200], 50, 2, 500, 1),
                    ("medium", [34, 33, 33], [500, 500], 100, 4, 1_250, 2),
                    ("large", [17, 17, 16], [1_200, 1_000], 200, 8, 2_500, 4),
                ];
                let each = sizes.into_iter().flat_map(|(name, counts, times, priority, pods, cpu, slice)| {
                    let variants = [Variant::Required, Variant::Preferred, Variant::Slices(slice)];
                    variants.into_iter().zip(counts).map(move |(variant, count)| {
                        class(name, Some(variant), count, times, priority, pods, cpu)
                    })
                });
                (5, 6, each.collect())
            }
        };
        Self { shape, cohorts, queues, classes }
    }

    /// What Soroi is configured to.
    pub(super) fn policy(&self) -> Policy {
        match self.shape {
            Shape::Topology => Policy::TopologyOnly,
            Shape::Baseline | Shape::Large => Policy::QuotaOnly,
        }
    }

    /// The queues' names, which are their namespaces' too, with their cohorts.
    pub(super) fn queues(&self) -> impl Iterator<Item = (String, String)> + '_ {
        (0..self.cohorts).flat_map(move |cohort| {
            (0..self.queues)
                .map(move |queue| (format!("cq-{queue}-cohort-{cohort}"), format!("cohort-{cohort}")))
        })
    }

    /// How many Workloads there are in all.
    pub(super) fn workloads(&self) -> usize {
        let each: u32 = self.classes.iter().map(|class| class.count).sum();
        self.queues().count() * each as usize
    }

    /// The flavor, the topology and its nodes.
    pub(super) fn ground(&self) -> Vec<Made> {
        let labels = json!({ "soroi.dev/bench": "load" });
        let mut made = Vec::new();
        let mut spec = json!({});
        if self.shape == Shape::Topology {
            let levels = [BLOCK, RACK, HOST].map(|label| json!({ "nodeLabel": label }));
            made.push(object(
                &format!("{KUEUE}/topologies"),
                "Topology",
                "soroi-bench-load",
                json!({ "levels": levels }),
            ));
            spec = json!({ "nodeLabels": { GROUP_LABEL: "tas" }, "topologyName": "soroi-bench-load" });
            made.extend((0..RACKS * NODES_PER_RACK).map(|number| ("/api/v1/nodes".to_owned(), node(number))));
        }
        made.push(object(&format!("{KUEUE}/resourceflavors"), "ResourceFlavor", "soroi-bench-load", spec));
        for (_, object) in &mut made {
            match object["metadata"]["labels"].as_object_mut() {
                Some(there) => _ = there.insert("soroi.dev/bench".into(), "load".into()),
                None => object["metadata"]["labels"] = labels.clone(),
            }
        }
        made
    }

    /// The namespace, the ClusterQueue and the LocalQueue of a queue.
    pub(super) fn queue(name: &str, cohort: &str) -> Vec<Made> {
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": name, "labels": { "soroi.dev/bench": "load" } },
        });
        let quota = json!({ "name": "cpu", "nominalQuota": "20", "borrowingLimit": "100" });
        let spec = json!({
            "cohortName": cohort,
            "namespaceSelector": {},
            "preemption": { "reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority" },
            "resourceGroups": [{
                "coveredResources": ["cpu"],
                "flavors": [{ "name": "soroi-bench-load", "resources": [quota] }],
            }],
        });
        let mut queue = object(&format!("{KUEUE}/clusterqueues"), "ClusterQueue", name, spec);
        queue.1["metadata"]["labels"] = json!({ "soroi.dev/bench": "load" });
        let spec = json!({ "clusterQueue": name });
        let door = object(&format!("{KUEUE}/namespaces/{name}/localqueues"), "LocalQueue", name, spec);
        vec![("/api/v1/namespaces".to_owned(), namespace), queue, door]
    }
}

impl Class {
    /// A Workload of a queue.
    pub(super) fn workload(&self, queue: &str, number: u32) -> Made {
        let variant = match self.variant {
            None => "",
            Some(Variant::Required) => "-required",
            Some(Variant::Preferred) => "-preferred",
            Some(Variant::Slices(_)) => "-balanced",
        };
        let name = format!("{}{variant}-{number}", self.name);
        let requests = json!({ "cpu": format!("{}m", self.cpu_milli) });
        let pod = json!({
            "restartPolicy": "Never",
            "containers": [{ "name": "c", "image": "none", "resources": { "requests": requests } }],
        });
        let mut set = json!({ "name": "main", "count": self.pods, "template": { "spec": pod } });
        match self.variant {
            None => {}
            Some(Variant::Required) => set["topologyRequest"] = json!({ "required": RACK }),
            Some(Variant::Preferred) => set["topologyRequest"] = json!({ "preferred": RACK }),
            Some(Variant::Slices(size)) => {
                set["topologyRequest"] =
                    json!({ "podSetSliceRequiredTopology": RACK, "podSetSliceSize": size });
            }
        }
        let spec = json!({ "queueName": queue, "priority": self.priority, "podSets": [set] });
        object(&format!("{KUEUE}/namespaces/{queue}/workloads"), "Workload", &name, spec)
    }
}

fn object(collection: &str, kind: &str, name: &str, spec: Value) -> Made {
    let object = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": { "name": name }, "spec": spec,
    });
    (collection.to_owned(), object)
}

fn node(number: u32) -> Value {
    let name = format!("soroi-bench-load-{number:04}");
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": name, "labels": {
            BLOCK: "b1", RACK: format!("r{}", number / NODES_PER_RACK), HOST: name, GROUP_LABEL: "tas",
        } },
        "status": {
            "allocatable": { "cpu": "96", "memory": "256Gi", "pods": "110" },
            "capacity": { "cpu": "96", "memory": "256Gi", "pods": "110" },
            "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated" }],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loads_are_as_published() {
        assert_eq!(Plan::new(Shape::Baseline, 1).workloads(), 15_000);
        assert_eq!(Plan::new(Shape::Topology, 1).workloads(), 15_000);
        assert_eq!(Plan::new(Shape::Large, 1).workloads(), 50_000);
        assert_eq!(Plan::new(Shape::Baseline, 1_000).workloads(), 90);
    }

    #[test]
    fn what_a_queue_has_to_do_takes_at_least_66_seconds() {
        let plan = Plan::new(Shape::Baseline, 1);
        let work = |class: &Class| u128::from(class.count * class.cpu_milli) * class.runs.as_millis();
        let work: u128 = plan.classes.iter().map(work).sum();
        // CPU-milliseconds in thousandths, by 20 CPUs.
        assert_eq!(work / 1_000 / 20, 66_000);
    }
}
