//! Clusters as text, for tests.
//!
//! ```text
//! topology t rack host              levels (label keys); `host` stands for kubernetes.io/hostname
//! node a gpu=8 rack=r1 zone=z1      resources (gpu, cpu, mem, pods), everything else is a label
//! node b gpu=8 taint=k=v:NoSchedule cordoned notready
//! use a gpu=3                       an unmanaged pod on the node
//! pods m 3 gpu=2 topology=t required=rack zone=z1 tolerate=k bound=a:1 group=g role=ps
//! pods s 6 gpu=1 topology=t slice=rack:3    slices: level and size, coarse to fine
//! min 2 ps=1                        at least so many pods, in all and of a role
//! without a                         the node must not be used
//! packing Spread                    or Fragmentation
//! pods m 3 is=x near=rack:x apart=host:y spread=zone:x:1 port=80     what pods demand of others
//! pods m 3 likes=zone:z1:50 fond=rack:x:50 shy=host:x:50 even=zone:x:1      what pods would like
//! claim c of=v once                 a claim and its volume (`-`: none); `once`: for one pod at a time
//! volume v on=zone:z1 in=z1,z2 csi=fast:h1  reached from nodes with the label; its zones; driver and handle
//! attach a fast=2                   so many volumes of the driver on the node
//! pods m 2 claim=c                  pods that mount the claim
//! ```

use std::sync::Arc;

use super::{PlaceRequest, Placement, PodSetRequest, place};
use crate::cluster::{Cluster, Occupant};
use crate::decision::TopologyDomain;
use crate::event::{
    Attached, Claim, ClaimKey, ClaimState, Expression, HostPort, Name, Neighbours, Node, NodeSelectorTerm,
    Operator, PodSelector, PodTerm, Preferences, Protocol, Shape, Slice, Spread, Taint, TaintEffect,
    Toleration, TolerationMatch, TopologyWish, Volume, Who,
};
use crate::fit::Ask;
use crate::minima::Minima;
use crate::packing::Packing;
use crate::reason::PlaceProblem;

/// What a text says: the cluster, and what is asked of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Board {
    pub(crate) cluster: Cluster,
    pub(crate) request: PlaceRequest,
    used: usize,
}

impl Board {
    pub(crate) fn new(text: &str) -> Self {
        let mut board = Self::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            board.line(line);
        }
        board
    }

    pub(crate) fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[0] {
            "topology" => {
                let levels: Vec<Name> = words[2..].iter().map(|level| label(level)).collect();
                self.cluster.upsert_topology(&words[1].into(), &levels);
            }
            "node" => {
                self.cluster.upsert_node(&node(&words[1..]));
            }
            "gone" => {
                self.cluster.remove_node(&words[1].into());
            }
            "use" => {
                self.used += 1;
                let pod = Occupant::Pod(format!("used-{}", self.used).into());
                let shape =
                    pods(&["used", "1"].into_iter().chain(words[2..].iter().copied()).collect::<Vec<_>>());
                let node = words[1].into();
                match &shape.who {
                    Some(who) => self.cluster.charge_as(pod, &node, &shape.ask.shape, who, false),
                    None => self.cluster.charge(pod, &node, &shape.ask.shape),
                }
            }
            "claim" => {
                let claim = claim(&words[1..]);
                self.cluster.set_claim(&claim.key, Some(&claim));
            }
            "volume" => {
                let volume = volume(&words[1..]);
                self.cluster.set_volume(&volume.name, Some(&volume));
            }
            "attach" => {
                let limit = |word: &&str| {
                    let (driver, most) = word.split_once('=').unwrap();
                    (driver.into(), most.parse().unwrap())
                };
                self.cluster.set_volume_limits(&words[1].into(), &words[2..].iter().map(limit).collect());
            }
            "pods" => self.request.pod_sets.push(pods(&words[1..])),
            "min" => {
                let role = |word: &&str| {
                    let (role, least) = word.split_once('=').unwrap();
                    (role.into(), least.parse().unwrap())
                };
                let roles = words[2..].iter().map(role).collect();
                self.request.minima = Some(Minima { members: words[1].parse().unwrap(), roles });
            }
            "packing" => {
                self.request.packing = match words[1] {
                    "Spread" => Packing::Spread,
                    "Fragmentation" => Packing::Fragmentation,
                    _ => Packing::BestFit,
                }
            }
            "without" => self.request.excluded.push(words[1].into()),
            other => panic!("what is {other}?"),
        }
    }

    pub(crate) fn place(&mut self) -> Result<Placement, Vec<(Name, PlaceProblem)>> {
        place(&mut self.cluster, &self.request)
    }

    /// The answer as text.
    pub(crate) fn draw(&mut self) -> String {
        match self.place() {
            Ok(placement) => {
                let mut lines = String::new();
                for pod_set in &placement.pod_sets {
                    let nodes: Vec<String> =
                        pod_set.nodes.iter().map(|(node, count)| format!("{node}×{count}")).collect();
                    lines += &format!("{}  {}\n", pod_set.name, nodes.join(" "));
                }
                lines
            }
            Err(problems) => {
                problems.iter().map(|(name, problem)| format!("{name}  {}\n", words(problem))).collect()
            }
        }
    }
}

fn words(problem: &PlaceProblem) -> String {
    let mut text = format!("{} of {} fit", problem.fitting, problem.asked);
    if let Some(closest) = &problem.closest {
        text += &format!(" in {closest}");
    }
    text += &format!("; {} nodes", problem.nodes);
    for (problem, count) in &problem.excluded {
        text += &match problem {
            crate::reason::NodeProblem::Taint { key, value } => format!(", {count} taint {key}={value}"),
            crate::reason::NodeProblem::Insufficient { resource } => format!(", {count} short of {resource}"),
            other => format!(", {count} {other:?}"),
        };
    }
    if problem.unproven {
        text += "; not proven";
    }
    text
}

fn label(word: &str) -> Name {
    if word == "host" { "kubernetes.io/hostname".into() } else { word.into() }
}

const RESOURCES: [&str; 4] = ["gpu", "cpu", "mem", "pods"];

pub(crate) fn node(words: &[&str]) -> Node {
    let mut node = Node {
        name: words[0].into(),
        labels: [(label("host"), Name::from(words[0]))].into(),
        taints: Vec::new(),
        unschedulable: false,
        ready: true,
        allocatable: [("pods".into(), 110)].into(),
    };
    for word in &words[1..] {
        match (*word, word.split_once('=')) {
            ("cordoned", _) => node.unschedulable = true,
            ("notready", _) => node.ready = false,
            (_, Some(("taint", taint))) => node.taints.push(parse_taint(taint)),
            (_, Some((name, amount))) if RESOURCES.contains(&name) => {
                node.allocatable.insert(name.into(), amount.parse().unwrap());
            }
            (_, Some((key, "-"))) => {
                node.labels.remove(&label(key));
            }
            (_, Some((key, value))) => {
                node.labels.insert(label(key), value.into());
            }
            (other, None) => panic!("what is {other}?"),
        }
    }
    node
}

fn parse_taint(text: &str) -> Taint {
    let (pair, effect) = text.split_once(':').unwrap();
    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
    Taint { key: key.into(), value: value.into(), effect: effect_of(effect) }
}

fn effect_of(text: &str) -> TaintEffect {
    match text {
        "NoSchedule" => TaintEffect::NoSchedule,
        "NoExecute" => TaintEffect::NoExecute,
        "PreferNoSchedule" => TaintEffect::PreferNoSchedule,
        other => panic!("what is {other}?"),
    }
}

/// Pods called so: their label `app`.
pub(crate) fn called(name: &str) -> Arc<Who> {
    let labels = [("app".into(), name.into())].into();
    Arc::new(Who { namespace: "ns".into(), labels })
}

/// The pods with this `app` label; `*`: whatever their labels are.
fn pods_called(name: &str) -> PodSelector {
    let named = |name: &str| Expression { key: "app".into(), op: Operator::In(vec![name.into()]) };
    PodSelector {
        namespaces: vec!["ns".into()],
        namespace_selector: None,
        labels: Some(Some(name).filter(|name| *name != "*").map(named).into_iter().collect()),
    }
}

fn term(key: &str, name: &str) -> PodTerm {
    PodTerm { topology_key: label(key), pods: pods_called(name) }
}

fn spread<'a>(mut word: impl FnMut() -> &'a str) -> Spread {
    Spread {
        topology_key: label(word()),
        pods: pods_called(word()),
        max_skew: word().parse().unwrap(),
        min_domains: word().parse().unwrap_or(1),
        honours_affinity: word() != "all",
        honours_taints: false,
    }
}

/// Takes in what a word says of what pods would like; says whether it does.
pub(crate) fn wish(prefers: &mut Preferences, key: &str, value: &str) -> bool {
    let mut words = value.split(':');
    let mut word = || words.next().unwrap_or_default();
    match key {
        "likes" => {
            let there = Expression { key: label(word()), op: Operator::In(vec![word().into()]) };
            let term = NodeSelectorTerm { labels: vec![there], fields: Vec::new() };
            prefers.nodes.push((word().parse().unwrap(), term));
        }
        "fond" | "shy" => {
            let term = term(word(), word());
            let weighed = (word().parse().unwrap(), term);
            if key == "fond" { prefers.near.push(weighed) } else { prefers.apart.push(weighed) }
        }
        "even" => prefers.spread.push(spread(word)),
        _ => return false,
    }
    true
}

/// Takes in what a word says of other pods; says whether it does.
pub(crate) fn demand(demands: &mut Neighbours, key: &str, value: &str) -> bool {
    let mut words = value.split(':');
    let mut word = || words.next().unwrap_or_default();
    match key {
        "near" => demands.affinity.push(term(word(), word())),
        "apart" => demands.anti_affinity.push(term(word(), word())),
        "spread" => demands.spread.push(spread(word)),
        "port" => {
            let port = word().parse().unwrap();
            demands.ports.push(HostPort { port, protocol: Protocol::Tcp, ip: None });
        }
        _ => return false,
    }
    true
}

fn claim_key(name: &str) -> ClaimKey {
    ClaimKey { namespace: "ns".into(), name: name.into() }
}

fn claim(words: &[&str]) -> Claim {
    let volume = words.iter().find_map(|word| word.strip_prefix("of=")).filter(|name| *name != "-");
    Claim {
        key: claim_key(words[0]),
        volume: volume.map(Name::from),
        state: if volume.is_some() { ClaimState::Bound } else { ClaimState::Unbound },
        alone: words.contains(&"once"),
    }
}

fn volume(words: &[&str]) -> Volume {
    let mut volume = Volume { name: words[0].into(), ..Volume::default() };
    for word in &words[1..] {
        let (key, value) = word.split_once('=').unwrap();
        let (left, right) = value.split_once(':').unwrap_or((value, ""));
        match key {
            "on" => {
                let there = Expression { key: label(left), op: Operator::In(vec![right.into()]) };
                volume.node_affinity =
                    Some(vec![NodeSelectorTerm { labels: vec![there], fields: Vec::new() }]);
            }
            "in" => {
                let zones = value.split(',').map(Name::from).collect();
                volume.zones.insert("topology.kubernetes.io/zone".into(), zones);
            }
            "csi" => volume.attached = Some(Attached { driver: left.into(), handle: right.into() }),
            other => panic!("what is {other}?"),
        }
    }
    volume
}

pub(crate) fn pods(words: &[&str]) -> PodSetRequest {
    let mut shape = Shape::default();
    let mut demands = Neighbours::default();
    let mut prefers = Preferences::default();
    let mut pods =
        PodSetRequest { name: words[0].into(), count: words[1].parse().unwrap(), ..PodSetRequest::default() };
    for word in &words[2..] {
        let (key, value) = word.split_once('=').unwrap();
        if demand(&mut demands, key, value) || wish(&mut prefers, key, value) {
            continue;
        }
        match key {
            "is" => pods.who = Some(called(value)),
            "topology" => pods.topology = Some(value.into()),
            "required" => pods.request.wish = TopologyWish::Required(label(value)),
            "preferred" => pods.request.wish = TopologyWish::Preferred(label(value)),
            "slice" => {
                let (level, size) = value.split_once(':').unwrap();
                pods.request.slices.push(Slice { level: label(level), size: size.parse().unwrap() });
            }
            "group" => pods.group = Some(value.into()),
            "role" => pods.role = Some(value.into()),
            "flavor" => {
                let (key, value) = value.split_once(':').unwrap();
                pods.ask.node_labels.insert(key.into(), value.into());
            }
            "bound" => {
                let (node, count) = value.split_once(':').unwrap();
                pods.bound.push((node.into(), count.parse().unwrap()));
            }
            "pinned" => {
                let (path, count) = value.split_once(':').unwrap();
                let values = path.split('/').map(Name::from).collect();
                pods.pinned.push(TopologyDomain { values, count: count.parse().unwrap() });
            }
            "claim" => shape.claims.push(claim_key(value)),
            "tolerate" => shape.tolerations.push(Toleration {
                key: Some(value.into()),
                matches: TolerationMatch::Exists,
                effect: None,
            }),
            "zones" => {
                let values = value.split(',').map(Name::from).collect();
                let zone = Expression { key: "zone".into(), op: Operator::In(values) };
                shape.node_affinity = Some(vec![NodeSelectorTerm { labels: vec![zone], fields: Vec::new() }]);
            }
            resource if RESOURCES.contains(&resource) => {
                shape.requests.insert(resource.into(), value.parse().unwrap());
            }
            key => {
                shape.node_selector.insert(label(key), value.into());
            }
        }
    }
    shape.neighbours = Some(demands).filter(|demands| !demands.is_empty()).map(Arc::new);
    shape.prefers = Some(prefers).filter(|prefers| !prefers.is_empty()).map(Arc::new);
    shape.claims.sort();
    pods.ask = Ask { shape: Arc::new(shape), ..pods.ask };
    pods
}
