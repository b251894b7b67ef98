//! How many gangs can be admitted in a second, with many queues and quota alone? The queues of Kueue's
//! published load (`published::plan`), kept busy: whenever some gangs end, as many come.

#![expect(clippy::disallowed_methods, reason = "a benchmark measures the wall clock, not the cluster's time")]

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use anyhow::ensure;
use soroi_engine::decision::{Decision, Settings};
use soroi_engine::event::{
    ClusterQueue, Event, Flavor, FlavorQuotas, Gang, GangId, LocalQueue, Name, PodSet, Policy, Preemptible,
    Preemption, Quota, ResourceGroup, Shape, StopPolicy, TopologyRequest,
};
use soroi_engine::{Engine, Outcome};

use super::load::{self, GangSize};

/// Queues of one cohort.
const QUEUES_PER_COHORT: usize = 100;
/// Gangs of one CPU that a queue has quota for.
const RUNNING_PER_QUEUE: usize = 20;
/// Gangs that wait in each queue meanwhile.
const WAITING_PER_QUEUE: usize = 20;
/// How many gangs end at a time: some of what happens between two decisions on a busy cluster.
const ENDED_AT_ONCE: usize = 50;
/// How many gangs end before the clock is stopped, for each queue.
const ENDED_PER_QUEUE: usize = 20;

/// Admissions in a second: telling of the ends and of new gangs, deciding, and confirming.
pub(super) fn measure(queues: usize) -> anyhow::Result<f64> {
    let mut load = Load::new(queues);
    for number in 0..queues * (RUNNING_PER_QUEUE + WAITING_PER_QUEUE) {
        load.arrive(number % queues, 0);
    }
    load.decide(0);
    ensure!(load.running.len() == queues * RUNNING_PER_QUEUE, "{} gangs run", load.running.len());
    let (ends, steps) = (ENDED_AT_ONCE.min(queues), ENDED_PER_QUEUE * queues / ENDED_AT_ONCE.min(queues));
    let mut admitted = 0;
    let started = Instant::now();
    for step in 0..steps {
        let now = 1_000 + i64::try_from(step)?;
        for _ in 0..ends {
            let (gang, queue) = load.running.pop_front().unwrap_or_default();
            load.engine.apply(Event::GangGone(gang), now);
            load.arrive(queue, now);
        }
        admitted += load.decide(now);
    }
    let seconds = started.elapsed().as_secs_f64();
    ensure!(admitted == steps * ends, "{admitted} gangs were admitted after {} ended", steps * ends);
    Ok(admitted as f64 / seconds)
}

/// An engine under load.
struct Load {
    engine: Engine,
    /// In the order in which they were admitted, with their queues.
    running: VecDeque<(GangId, usize)>,
    created: usize,
}

impl Load {
    fn new(queues: usize) -> Self {
        let settings = Settings { placement: Policy::QuotaOnly, ..Settings::default() };
        let mut engine = Engine::new(settings);
        for fact in facts(queues) {
            engine.apply(fact, 0);
        }
        engine.decide(0);
        Self { engine, running: VecDeque::new(), created: 0 }
    }

    fn arrive(&mut self, queue: usize, now: i64) {
        // The queue is in the name, so that an admission says whose it is.
        let id: Name = format!("{queue}-{}", self.created).into();
        let gang = load::gang(self.created, GangSize { pods: 1, gpus: 1, one_rack: false });
        let requests = BTreeMap::from([(cpu(), 1_000)]);
        let sets = gang.pod_sets.iter().map(|set| PodSet {
            shape: Arc::new(Shape { requests: requests.clone(), ..Shape::default() }),
            topology: TopologyRequest::default(),
            ..set.clone()
        });
        let pod_sets = sets.collect();
        let local_queue = Some(queue_name(queue));
        let gang = Gang { name: id.clone(), owners: vec![id.clone()], id, local_queue, pod_sets, ..gang };
        self.created += 1;
        self.engine.apply(Event::Gang(gang), now);
    }

    /// Decides, and tells at once that what was decided is written down. How many were admitted.
    fn decide(&mut self, now: i64) -> usize {
        let before = self.running.len();
        for decision in self.engine.decide(now) {
            let Decision::Admit(admission) = decision else { continue };
            let queue = admission.gang.split('-').next().and_then(|queue| queue.parse().ok());
            self.engine.confirm(Outcome::Committed(admission.gang.clone()), now);
            self.running.push_back((admission.gang, queue.unwrap_or_default()));
        }
        self.engine.decide(now);
        // Asked for after every decision by whoever shows it.
        self.engine.changed_cluster_queues();
        self.engine.changed_local_queues();
        self.running.len() - before
    }
}

fn cpu() -> Name {
    "cpu".into()
}

fn queue_name(number: usize) -> Name {
    format!("queue-{number:04}").into()
}

fn facts(queues: usize) -> Vec<Event> {
    let flavor = Flavor {
        name: "main".into(),
        node_labels: BTreeMap::new(),
        node_taints: Vec::new(),
        tolerations: Vec::new(),
        topology: None,
    };
    let namespace = Event::Namespace { name: "default".into(), labels: BTreeMap::new() };
    let mut facts = vec![namespace, Event::Flavor(flavor)];
    for number in 0..queues {
        facts.push(Event::ClusterQueue(cluster_queue(number)));
        facts.push(Event::LocalQueue(LocalQueue {
            namespace: "default".into(),
            name: queue_name(number),
            cluster_queue: queue_name(number),
            stop: StopPolicy::None,
        }));
    }
    facts
}

fn cluster_queue(number: usize) -> ClusterQueue {
    let nominal = 1_000 * i64::try_from(RUNNING_PER_QUEUE).unwrap_or(i64::MAX);
    let quota = Quota { resource: cpu(), nominal, borrowing_limit: Some(5 * nominal), lending_limit: None };
    let flavors = vec![FlavorQuotas { flavor: "main".into(), quotas: vec![quota] }];
    ClusterQueue {
        name: queue_name(number),
        cohort: Some(format!("cohort-{}", number / QUEUES_PER_COHORT).into()),
        groups: vec![ResourceGroup { covered: vec![cpu()], flavors }],
        preemption: Preemption {
            within_queue: Preemptible::LowerPriority,
            reclaim: Preemptible::Any,
            ..Preemption::default()
        },
        ..load::queue()
    }
}
