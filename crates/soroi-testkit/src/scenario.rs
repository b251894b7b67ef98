//! What does a story say? A scenario file as a value.
//!
//! A scenario is a Markdown file that reads as a page: prose, manifests in fenced YAML, and console
//! blocks in which a line that starts with `$ ` is a step and the lines below it are what must be
//! seen. `scenarios/README.md` is the reference of the format. Every step is something that a user
//! does through the API (or starting and stopping the product), so that the same file runs on the
//! embedded cluster and on a real one.
//!
//! This module parses and nothing more: it never talks to a cluster.

mod build;
mod command;
mod page;
mod words;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::Value;
use soroi_control::config;

use crate::kind::Kind;

pub(crate) use words::span;
pub use words::{DEFAULT_NAMESPACE, OWN_PREFIX};

/// A placement policy, as scenarios and configurations spell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Placement {
    /// Quota and places in one decision.
    Unified,
    /// Places only where the flavor names a Topology, pinned by node selectors.
    TopologyOnly,
    /// Quota first, then places for the gang.
    AfterAdmission,
    /// Quota alone.
    QuotaOnly,
}

impl Placement {
    /// All of them, the default first.
    pub const ALL: [Self; 4] = [Self::Unified, Self::TopologyOnly, Self::AfterAdmission, Self::QuotaOnly];

    /// Its name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unified => "Unified",
            Self::TopologyOnly => "TopologyOnly",
            Self::AfterAdmission => "AfterAdmission",
            Self::QuotaOnly => "QuotaOnly",
        }
    }

    /// The policy of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|placement| placement.name() == name)
    }

    /// Whether a gang under this policy rests whole or empty.
    pub fn all_or_nothing(self) -> bool {
        matches!(self, Self::Unified | Self::AfterAdmission)
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A scenario file.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// File name without its ending.
    pub name: String,
    /// The text of its first heading.
    pub title: String,
    /// What its `yaml settings` block says.
    pub settings: Settings,
    /// Steps in order.
    pub steps: Vec<Step>,
}

/// What holds for a scenario as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The policies that it is played under.
    pub placements: Vec<Placement>,
    /// How long what must be seen may take.
    pub within: Duration,
    /// How long a gang may rest between nothing and its minimum after it was whole.
    pub recovery: Duration,
    /// Extra time for what must be seen after a crash or under faults: a restart, back-offs.
    pub patience: Duration,
    /// Kinds of runs that make no sense here, each with the reason.
    pub skip: BTreeMap<String, String>,
    /// Why a run on a real cluster takes more than a minute; `None`: it does not.
    pub slow: Option<String>,
    /// How many replicas of the product there are; of several one leads.
    pub replicas: usize,
    /// How far the product's clocks may be off, in another way at each start of a process.
    pub astray: Duration,
    /// How long pods may take to be ready; `None`: as long as they like.
    pub wait_for_pods_ready: Option<WaitForPodsReady>,
    /// Whether queues share fairly, with Kueue's usual rules of preemption.
    pub fair_sharing: bool,
}

/// The product's setting of this name, in Kueue's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitForPodsReady {
    /// How long after the admission they have to be ready.
    pub timeout: Duration,
    /// How long after one is not any more; nothing: no matter.
    pub recovery_timeout: Duration,
    /// Nobody is admitted while pods of somebody else who is are not ready.
    pub block_admission: bool,
    /// Who was not ready in time stays where he was in the queue, instead of going to its end.
    pub keeps_place: bool,
    /// How often one is put back at most.
    pub limit: Option<u32>,
    /// The first pause; doubles each time.
    pub pause: Duration,
}

impl WaitForPodsReady {
    /// What the control side is told.
    pub fn rules(&self) -> config::WaitForPodsReady {
        let millis = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        let recovers = !self.recovery_timeout.is_zero();
        config::WaitForPodsReady {
            timeout: millis(self.timeout),
            recovery_timeout: recovers.then(|| millis(self.recovery_timeout)),
            requeuing: config::Requeuing {
                to_the_back: !self.keeps_place,
                limit: self.limit,
                base_secs: u32::try_from(self.pause.as_secs()).unwrap_or(u32::MAX),
                max_secs: 3_600,
            },
        }
    }

    /// The same for `soroi run --config`, where a wait lasts as long as `pace` says.
    pub fn configuration(&self, pace: impl Fn(Duration) -> Duration) -> String {
        let span = |told: Duration| format!("{}ms", pace(told).as_millis());
        let (timeout, recovery) = (span(self.timeout), span(self.recovery_timeout));
        let timestamp = if self.keeps_place { "Creation" } else { "Eviction" };
        let limit = self.limit.map_or_else(String::new, |limit| format!(", backoffLimitCount: {limit}"));
        let (block, pause) = (self.block_admission, pace(self.pause).as_secs());
        format!(
            "waitForPodsReady: {{timeout: {timeout}, recoveryTimeout: {recovery}, blockAdmission: {block}, \
             requeuingStrategy: {{timestamp: {timestamp}, backoffBaseSeconds: {pause}{limit}}}}}\n"
        )
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            placements: vec![Placement::Unified],
            within: Duration::from_secs(10),
            recovery: Duration::from_secs(65),
            patience: Duration::from_secs(90),
            skip: BTreeMap::new(),
            slow: None,
            replicas: 1,
            astray: Duration::ZERO,
            wait_for_pods_ready: None,
            fair_sharing: false,
        }
    }
}

/// One step: a line of a console block with what must be seen, or a YAML block.
#[derive(Clone, Debug)]
pub struct Step {
    /// Line in the file, from 1.
    pub line: usize,
    /// The step as written.
    pub text: String,
    /// The runs that it belongs to.
    pub only: Only,
    /// What is done.
    pub action: Action,
    /// The lines that must be seen, as written.
    pub expected: Vec<String>,
}

impl Step {
    /// Whether the step belongs to a run under `placement`; `plain`: without trouble on the way.
    pub fn applies_to(&self, placement: Placement, plain: bool) -> bool {
        let placed = self.only.placements.is_empty() || self.only.placements.contains(&placement);
        placed && (plain || !self.only.plain)
    }
}

/// The runs that a step belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Only {
    /// The policies; empty: all.
    pub placements: Vec<Placement>,
    /// Only runs without faults and crashes, where a lost request cannot let another be first.
    pub plain: bool,
}

/// The name of an object: namespace (empty for cluster-scoped kinds) and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ref {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace, or empty.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() || self.namespace == DEFAULT_NAMESPACE {
            write!(f, "{} {}", self.kind.word, self.name)
        } else {
            write!(f, "{} {}/{}", self.kind.word, self.namespace, self.name)
        }
    }
}

/// A gang by the name of its Job or PodGroup.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GangRef {
    /// Its namespace.
    pub namespace: String,
    /// The name of its Job or PodGroup.
    pub name: String,
}

/// Some pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pods {
    /// By name.
    Named(Vec<(String, String)>),
    /// Members of a gang that have not ended, by name.
    Of {
        /// The gang.
        gang: GangRef,
        /// Only those on this node.
        node: Option<String>,
        /// Only the one with this completion index.
        index: Option<u32>,
        /// All of them, or the first one.
        all: bool,
    },
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Creates objects, or merges into those that are there.
    Apply(Vec<Value>),
    /// Deletes objects; waits for nothing.
    Delete(Vec<Ref>),
    /// Deletes objects, but not what they own.
    Orphan(Vec<Ref>),
    /// Deletes pods.
    DeletePods(Pods),
    /// Evicts pods through the eviction API.
    Evict(Pods),
    /// Takes the finalizers of pods that are being deleted away.
    Release(Pods),
    /// Merges into an object, or into a subresource of it.
    Patch {
        /// The object.
        target: Ref,
        /// `status`, `scale` or nothing.
        subresource: Option<String>,
        /// RFC 7386.
        patch: Value,
    },
    /// Merges into the Workloads of a gang, whose names the product makes up.
    PatchWorkload {
        /// The gang.
        gang: GangRef,
        /// `status` or nothing.
        subresource: Option<String>,
        /// RFC 7386.
        patch: Value,
    },
    /// Adds a taint to a node, or takes it away (`effect: None`).
    Taint {
        /// The node.
        node: String,
        /// The taint's key.
        key: String,
        /// The taint's value.
        value: String,
        /// Its effect; `None` removes all taints with that key.
        effect: Option<String>,
    },
    /// Writes a phase into the status of pods, as their kubelet would.
    Phase {
        /// The pods.
        pods: Pods,
        /// The phase.
        phase: String,
    },
    /// Lets time pass.
    Wait(Duration),
    /// Stops the product, or starts it.
    Product {
        /// Whether it runs from now on.
        runs: bool,
    },
    /// Puts the replica that leads to sleep; the story goes on.
    Sleep {
        /// For how long.
        span: Duration,
        /// Whether its machine is suspended, so that its timers stand meanwhile.
        suspended: bool,
    },
    /// Nothing goes wrong on the way to the API server for a while: what fits must be seen to run, and what
    /// makes room must be noticed. Does nothing where no trouble is made.
    Lull {
        /// It begins, or ends.
        begins: bool,
    },
    /// From now on one of so many new pods is refused; `None`: no longer.
    Refuse {
        /// See there.
        one_in: Option<u64>,
    },
    /// From now on this must never be true.
    Forbid(Condition),
    /// A condition that was forbidden is forbidden no longer.
    Allow(Condition),
    /// From now on a container is added to every new pod that matches.
    Inject(Injection),
    /// Looks at the cluster: the expected lines must be seen in time, and stay.
    Get(Look),
}

/// A mutation of new pods, as somebody else's admission webhook would make it.
#[derive(Clone, Debug, PartialEq)]
pub struct Injection {
    /// Labels that a pod must have.
    pub labels: BTreeMap<String, String>,
    /// The container that is added.
    pub container: Value,
}

/// A view of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// What is looked at.
    pub view: View,
    /// Only what belongs to this gang.
    pub gang: Option<GangRef>,
    /// Only these rows; empty: all.
    pub names: Vec<String>,
}

/// What a look shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// One row per gang.
    Gangs,
    /// One row per pod.
    Pods,
    /// One row per Job.
    Jobs,
    /// One row per PodGroup.
    Groups,
    /// One row per node, with what is on it.
    Nodes,
    /// One row per ClusterQueue.
    Queues,
    /// One row per LocalQueue.
    LocalQueues,
    /// One row per Workload.
    Workloads,
    /// One row per GangPlan.
    Plans,
    /// One row per event.
    Events,
}

/// All clauses hold at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// As written.
    pub text: String,
    /// The clauses.
    pub clauses: Vec<Clause>,
}

/// A number read from the cluster, compared with a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clause {
    /// What is measured.
    pub measure: Measure,
    /// How it is compared.
    pub compare: Compare,
    /// With what; quantities in base units.
    pub bound: i64,
}

/// What a condition measures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Bound pods of a gang that have not ended and are not being deleted.
    Bound(GangRef),
    /// Pods of a gang that exist and have not ended.
    Pods(GangRef),
    /// Pods of a gang that are being deleted.
    Terminating(GangRef),
    /// Pods of a gang that failed, those already gone included.
    Failed(GangRef),
    /// How often the gang's Workload went to Evicted.
    Evictions(GangRef),
    /// Usage of a resource in a ClusterQueue's status, over all flavors.
    Usage {
        /// The ClusterQueue.
        queue: String,
        /// The resource.
        resource: String,
    },
}

/// How a measure is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// `<`
    Less,
    /// `=`
    Equal,
    /// `>`
    More,
}

/// A file that cannot be read as a scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {text}")]
pub struct ParseError {
    /// Line in the file, from 1.
    pub line: usize,
    /// What is wrong.
    pub text: String,
}

impl Scenario {
    /// Reads a scenario from the text of its file.
    ///
    /// # Errors
    /// The first line that cannot be understood, and why.
    pub fn parse(name: &str, text: &str) -> Result<Self, ParseError> {
        page::parse(name, text)
    }

    /// The page with what was seen in place of what was expected; `seen` is by line of the step.
    pub fn rewrite(&self, text: &str, seen: &BTreeMap<usize, Vec<String>>) -> String {
        page::rewrite(self, text, seen)
    }
}

#[cfg(test)]
mod tests;
