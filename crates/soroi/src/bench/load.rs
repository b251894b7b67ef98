//! Which cluster and which gangs does the engine's benchmark use?
//!
//! Plain facts, as intake would make them of real objects. Sizes are arguments.

use std::collections::BTreeMap;
use std::sync::Arc;

use soroi_engine::event::{
    Amount, ClusterQueue, Event, Flavor, FlavorQuotas, Fungibility, Gang, GangId, LocalQueue, Name, Node,
    Pod, PodPhase, PodSet, Preemptible, Preemption, QueueingStrategy, Quota, Readiness, ResourceGroup, Shape,
    StopPolicy, Topology, TopologyRequest,
};

pub(crate) const GPU: &str = "example.com/gpu";
/// GPUs of every node.
pub(crate) const GPUS_PER_NODE: Amount = 8;
/// How many of what make up the next level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    nodes_per_rack: usize,
    racks_per_block: usize,
}

impl Site {
    /// As racks are.
    const SMALL_RACKS: Self = Self { nodes_per_rack: 10, racks_per_block: 20 };
    /// Rows, rather: one has room for a gang of hundreds.
    pub(crate) const LARGE_RACKS: Self = Self { nodes_per_rack: 250, racks_per_block: 5 };
}

/// The topology's levels, coarse to fine.
pub(crate) const LEVELS: [&str; 3] =
    ["topology.example.com/block", "topology.example.com/rack", "kubernetes.io/hostname"];

/// Which gangs wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GangSize {
    /// Number of pods.
    pub(crate) pods: u32,
    /// GPUs of each.
    pub(crate) gpus: Amount,
    /// Whether all must be in one rack.
    pub(crate) one_rack: bool,
}

fn name(text: impl AsRef<str>) -> Name {
    Arc::from(text.as_ref())
}

/// Nodes, the topology, and one queue whose quota is never the limit.
pub(crate) fn cluster(nodes: usize) -> Vec<Event> {
    cluster_of(nodes, Site::SMALL_RACKS)
}

/// The same with racks of another size.
pub(crate) fn cluster_of(nodes: usize, site: Site) -> Vec<Event> {
    let mut facts = vec![
        Event::Namespace { name: name("default"), labels: BTreeMap::new() },
        Event::Topology(Topology { name: name("default"), levels: LEVELS.map(name).to_vec() }),
        Event::Flavor(Flavor {
            name: name("main"),
            node_labels: BTreeMap::new(),
            node_taints: Vec::new(),
            tolerations: Vec::new(),
            topology: Some(name("default")),
        }),
        Event::ClusterQueue(queue()),
        Event::LocalQueue(LocalQueue {
            namespace: name("default"),
            name: name("main"),
            cluster_queue: name("main"),
            stop: StopPolicy::None,
        }),
    ];
    facts.extend((0..nodes).map(|number| Event::Node(node_at(number, site))));
    facts
}

/// A queue whose quota is never the limit.
pub(crate) fn queue() -> ClusterQueue {
    let quota =
        Quota { resource: name(GPU), nominal: Amount::MAX / 4, borrowing_limit: None, lending_limit: None };
    let flavors = vec![FlavorQuotas { flavor: name("main"), quotas: vec![quota] }];
    ClusterQueue {
        name: name("main"),
        cohort: None,
        namespace_selector: Some(Vec::new()),
        strategy: QueueingStrategy::BestEffortFifo,
        stop: StopPolicy::None,
        groups: vec![ResourceGroup { covered: vec![name(GPU)], flavors }],
        fungibility: Fungibility { stop_at_borrow: true, stop_at_preempt: false, prefer_preemption: false },
        preemption: Default::default(),
        weight_milli: 1_000,
        placement: None,
        packing: None,
        inactive: None,
    }
}

/// The queue with its gangs preempting those of lower priority.
pub(crate) fn queue_that_preempts() -> Event {
    let preemption = Preemption { within_queue: Preemptible::LowerPriority, ..Preemption::default() };
    Event::ClusterQueue(ClusterQueue { preemption, ..queue() })
}

/// The name of node `number`.
pub(crate) fn node_name(number: usize) -> Name {
    name(format!("node-{number:05}"))
}

/// Node `number`.
pub(crate) fn node_at(number: usize, site: Site) -> Node {
    let rack = number / site.nodes_per_rack;
    let block = rack / site.racks_per_block;
    let values = [name(format!("block-{block:03}")), name(format!("rack-{rack:04}")), node_name(number)];
    Node {
        name: node_name(number),
        labels: LEVELS.map(name).into_iter().zip(values).collect(),
        taints: Vec::new(),
        unschedulable: false,
        ready: true,
        allocatable: BTreeMap::from([
            (name("cpu"), 128_000),
            (name("memory"), 1 << 40),
            (name("pods"), 110),
            (name(GPU), GPUS_PER_NODE),
        ]),
    }
}

/// What a pod with so many GPUs needs.
pub(crate) fn shape(gpus: Amount) -> Arc<Shape> {
    let requests = BTreeMap::from([(name("cpu"), 4_000), (name("memory"), 16 << 30), (name(GPU), gpus)]);
    Arc::new(Shape { requests, ..Shape::default() })
}

/// The gang number `number`, queued in that order.
pub(crate) fn gang(number: usize, size: GangSize) -> Gang {
    let text = format!("gang-{number:05}");
    let topology = if size.one_rack {
        TopologyRequest::required(name(LEVELS[1]))
    } else {
        TopologyRequest::unconstrained()
    };
    // Only the GPU is paid for: the queue covers nothing else.
    let requests = BTreeMap::from([(name(GPU), size.gpus)]);
    let shape = Arc::new(Shape { requests, ..Shape::default() });
    Gang {
        id: name(&text),
        namespace: name("default"),
        name: name(&text),
        owners: vec![name(&text)],
        local_queue: Some(name("main")),
        volcano_queue: None,
        priority: 0,
        queued_at: i64::try_from(number).unwrap_or(i64::MAX),
        pod_sets: vec![PodSet {
            name: name("main"),
            role: None,
            count: size.pods,
            least: None,
            shape,
            charged: None,
            topology,
            who: Arc::default(),
        }],
        minima: None,
        readiness: Readiness::Ready,
        checks: Default::default(),
        policy: None,
        not_before: 0,
        foreign_scheduler: None,
        admitted: None,
        pods_ready: Default::default(),
    }
}

/// The number of a gang that [`gang`] made.
pub(crate) fn number_of(gang: &GangId) -> Option<usize> {
    gang.strip_prefix("gang-")?.parse().ok()
}

/// The pod that fills node `number` and that nobody queues.
pub(crate) fn hog(number: usize) -> Pod {
    pod_of(number, GPUS_PER_NODE)
}

/// A pod of so many GPUs on node `number`, that nobody queues.
pub(crate) fn pod_of(number: usize, gpus: Amount) -> Pod {
    Pod {
        uid: hog_uid(number),
        namespace: name("default"),
        name: hog_uid(number),
        node: Some(node_name(number)),
        shape: shape(gpus),
        who: Arc::default(),
        owner: None,
        pod_set: None,
        role: None,
        index: None,
        phase: PodPhase::Running,
        terminating: false,
        bindable: false,
    }
}

/// The uid of [`hog`].
pub(crate) fn hog_uid(number: usize) -> Name {
    name(format!("hog-{number:05}"))
}
