//! Which node is best for one pod? Filters and scores of kube-scheduler's default plugins.
//!
//! Filters, in their order (the first that fails gives the reason): NodeUnschedulable,
//! TaintToleration, NodeAffinity, NodePorts, NodeResourcesFit. Scores: NodeResourcesFit (least
//! allocated CPU and memory, weight 1), NodeAffinity (preferred terms, weight 2), TaintToleration
//! (`PreferNoSchedule`, weight 3). Among equals kube-scheduler draws lots; here the first name wins.
//!
//! Pure: it knows one pod, the nodes and what is used of them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::constraint;
use crate::need::{self, Amounts};
use crate::seen::{Node, Pod};

/// What scoring assumes of a container that asks for no CPU (milli) or memory (bytes).
const CPU_ASSUMED: i64 = 100;
const MEMORY_ASSUMED: i64 = 200 << 20;
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// What is used of a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage {
    need: Amounts,
    /// CPU and memory, with what is assumed of pods that ask for none.
    assumed: (i64, i64),
    /// Pods that take ports of the node.
    ports: Vec<Pod>,
}

impl Usage {
    pub(crate) fn add(&mut self, pod: &Pod) {
        need::add(&mut self.need, &pod.need);
        let (cpu, memory) = assumed(pod);
        self.assumed.0 = self.assumed.0.saturating_add(cpu);
        self.assumed.1 = self.assumed.1.saturating_add(memory);
        if !pod.host_ports.is_empty() {
            self.ports.push(pod.clone());
        }
    }

    pub(crate) fn take(&mut self, pod: &Pod) {
        need::take(&mut self.need, &pod.need);
        let (cpu, memory) = assumed(pod);
        self.assumed.0 = self.assumed.0.saturating_sub(cpu);
        self.assumed.1 = self.assumed.1.saturating_sub(memory);
        self.ports.retain(|other| other.meta.uid != pod.meta.uid);
    }
}

fn assumed(pod: &Pod) -> (i64, i64) {
    let containers = i64::try_from(pod.containers.len()).unwrap_or(1);
    let asked = |name: &str| pod.need.get(name).copied().filter(|amount| *amount > 0);
    (asked("cpu").unwrap_or(CPU_ASSUMED * containers), asked("memory").unwrap_or(MEMORY_ASSUMED * containers))
}

/// Everything about a pod that decides whether a node suits it: equal shapes get equal answers.
pub(crate) fn shape(pod: &Pod) -> String {
    format!("{:?}{:?}{:?}{:?}{:?}", pod.need, pod.selector, pod.affinity, pod.tolerations, pod.host_ports)
}

/// The best node for `pod`, or kube-scheduler's sentence on why there is none.
pub(crate) fn place<'a>(
    pod: &Pod,
    nodes: impl Iterator<Item = &'a Node>,
    usage: &BTreeMap<String, Usage>,
) -> Result<String, String> {
    let unused = Usage::default();
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut hopeless = 0;
    let mut feasible = Vec::new();
    let mut all = 0;
    for node in nodes {
        all += 1;
        let used = usage.get(node.name()).unwrap_or(&unused);
        let Err(unfit) = filter(pod, node, used) else {
            feasible.push((node, used));
            continue;
        };
        hopeless += usize::from(unfit.hopeless);
        for reason in unfit.reasons {
            *reasons.entry(reason).or_default() += 1;
        }
    }
    if all == 0 {
        return Err("no nodes available to schedule pods".into());
    }
    if feasible.is_empty() {
        // Two more plugins look for a way out and say that they found none: DynamicResources, which
        // has no claims here, and DefaultPreemption, which has nobody of lower priority here.
        let preemption = BTreeMap::from([
            ("Preemption is not helpful for scheduling".to_owned(), hopeless),
            ("No preemption victims found for incoming pod".to_owned(), all - hopeless),
        ]);
        return Err(format!(
            "{} no new claims to deallocate, preemption: {}",
            none_of(all, &reasons),
            none_of(all, &preemption)
        ));
    }
    Ok(best(pod, &feasible))
}

/// As kube-scheduler's `FitError` says it.
fn none_of(all: usize, reasons: &BTreeMap<String, usize>) -> String {
    let told = reasons.iter().filter(|(_, count)| **count > 0);
    let mut parts: Vec<String> = told.map(|(reason, count)| format!("{count} {reason}")).collect();
    parts.sort();
    format!("0/{all} nodes are available: {}.", parts.join(", "))
}

/// Why a node does not suit a pod.
struct Unfit {
    /// What the first filter that fails has to say.
    reasons: Vec<String>,
    /// It would not even if other pods left (`UnschedulableAndUnresolvable`).
    hopeless: bool,
}

/// Whether the node suits the pod.
fn filter(pod: &Pod, node: &Node, used: &Usage) -> Result<(), Unfit> {
    let never = |reason: &str| Err(Unfit { reasons: vec![reason.into()], hopeless: true });
    let cordon = || k8s_openapi::api::core::v1::Taint {
        key: UNSCHEDULABLE.into(),
        effect: "NoSchedule".into(),
        ..Default::default()
    };
    if node.unschedulable
        && !pod.tolerations.iter().any(|toleration| constraint::tolerates(toleration, &cordon()))
    {
        return never("node(s) were unschedulable");
    }
    if constraint::untolerated(pod, node, &["NoSchedule", "NoExecute"]).is_some() {
        return never("node(s) had untolerated taint(s)");
    }
    if !constraint::selects(pod, node) {
        return never("node(s) didn't match Pod's node affinity/selector");
    }
    if used.ports.iter().any(|other| constraint::ports_collide(pod, other)) {
        let reason = "node(s) didn't have free ports for the requested pod ports";
        return Err(Unfit { reasons: vec![reason.into()], hopeless: false });
    }
    let short = need::shortages(&pod.need, &used.need, &node.allocatable);
    if short.is_empty() {
        return Ok(());
    }
    let reason = |short: need::Short| match short.resource.as_str() {
        need::PODS => "Too many pods".into(),
        name => format!("Insufficient {name}"),
    };
    // More than the whole node has; the slot of a pod is not counted so.
    let hopeless = short.iter().any(|short| short.resource != need::PODS && short.requested > short.capacity);
    Err(Unfit { reasons: short.into_iter().map(reason).collect(), hopeless })
}

fn best(pod: &Pod, feasible: &[(&Node, &Usage)]) -> String {
    let liked = feasible.iter().map(|(node, _)| constraint::preference(pod, node)).max().unwrap_or(0);
    let disliked = feasible.iter().map(|(node, _)| constraint::disliked(pod, node)).max().unwrap_or(0);
    let score = |node: &Node, used: &Usage| -> i64 {
        let liking = match liked {
            0 => 0,
            most => constraint::preference(pod, node).saturating_mul(100) / most,
        };
        let peace = match i64::try_from(disliked).unwrap_or(0) {
            0 => 100,
            most => 100 - i64::try_from(constraint::disliked(pod, node)).unwrap_or(0) * 100 / most,
        };
        least_allocated(pod, node, used) + 2 * liking + 3 * peace
    };
    let best = feasible.iter().max_by_key(|(node, used)| (score(node, used), Reverse(node.name())));
    best.map(|(node, _)| node.name().to_owned()).unwrap_or_default()
}

/// How much would be left of CPU and memory, 0 to 100.
fn least_allocated(pod: &Pod, node: &Node, used: &Usage) -> i64 {
    let (cpu, memory) = assumed(pod);
    let left = |name: &str, used: i64, asked: i64| {
        let whole = node.allocatable.get(name).copied().unwrap_or(0);
        let taken = used.saturating_add(asked);
        if whole <= 0 || taken > whole {
            None
        } else {
            Some((i128::from(whole - taken) * 100 / i128::from(whole)) as i64)
        }
    };
    let there = [("cpu", used.assumed.0, cpu), ("memory", used.assumed.1, memory)];
    let there = there.into_iter().filter(|(name, ..)| node.allocatable.contains_key(*name));
    let scores: Vec<i64> = there.map(|(name, used, asked)| left(name, used, asked).unwrap_or(0)).collect();
    scores.iter().sum::<i64>() / i64::try_from(scores.len()).unwrap_or(1).max(1)
}
