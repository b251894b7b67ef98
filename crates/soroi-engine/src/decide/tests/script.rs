//! The language of the stories: one command a line.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use super::board::{Auto, Board};
use crate::decision::FlavorUsage;
use crate::event::*;
use crate::minima::Minima;
use crate::packing::Packing;
use crate::place::board as places;
use crate::reason::{NotYet, Off, QueueInactive};

/// Plays a story and returns what was decided after each line.
pub(crate) fn play(story: &str) -> String {
    let mut board = Board::new();
    run(&mut board, story);
    board.log
}

/// Plays a story and compares.
#[track_caller]
pub(crate) fn check(story: &str, expected: expect_test::Expect) {
    expected.assert_eq(&play(story));
}

pub(crate) fn run(board: &mut Board, story: &str) {
    for line in story.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let _ = writeln!(board.log, "{line}");
        command(board, line);
        board.settle();
    }
}

/// The words of a line: the first two stand alone, then come `key=value`, and flags.
struct Words<'a> {
    name: &'a str,
    flags: Vec<&'a str>,
    values: Vec<(&'a str, &'a str)>,
}

impl<'a> Words<'a> {
    fn of(line: &'a str) -> (&'a str, Self) {
        let mut words = line.split_whitespace();
        let verb = words.next().unwrap_or_default();
        let name = words.next().unwrap_or_default();
        let (mut flags, mut values) = (Vec::new(), Vec::new());
        for word in words {
            match word.split_once('=') {
                Some((key, value)) if !key.is_empty() => values.push((key, value)),
                _ => flags.push(word),
            }
        }
        (verb, Self { name, flags, values })
    }

    fn has(&self, flag: &str) -> bool {
        self.flags.contains(&flag)
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        self.values.iter().find(|(k, _)| *k == key).map(|(_, value)| *value)
    }

    fn number<T: std::str::FromStr>(&self, key: &str) -> Option<T> {
        self.get(key).map(|value| value.parse().unwrap_or_else(|_| panic!("{key}={value} is no number")))
    }

    /// `gpu=2`, `cpu=4`, …: whatever is not a word of the command itself.
    fn amounts(&self) -> BTreeMap<Name, Amount> {
        let amount = |(key, value): &(&str, &str)| match resource(key) {
            Some(name) => Some((name, value.parse().ok()?)),
            None => None,
        };
        self.values.iter().filter_map(amount).collect()
    }

    /// `keep:gpu=2`.
    fn kept(&self) -> BTreeMap<Name, Amount> {
        let amount = |(key, value): &(&str, &str)| {
            Some((resource(key.strip_prefix("keep:")?)?, value.parse().expect("a number")))
        };
        self.values.iter().filter_map(amount).collect()
    }

    fn labels(&self) -> Labels {
        let label = |(key, value): &(&str, &str)| Some((key.strip_prefix('@')?.into(), (*value).into()));
        self.values.iter().filter_map(label).collect()
    }

    fn taints(&self) -> Vec<Taint> {
        let taint = |(key, value): &(&str, &str)| {
            Some(Taint {
                key: key.strip_prefix('!')?.into(),
                value: (*value).into(),
                effect: TaintEffect::NoSchedule,
            })
        };
        self.values.iter().filter_map(taint).collect()
    }

    fn tolerations(&self) -> Vec<Toleration> {
        let toleration = |flag: &&str| {
            Some(Toleration {
                key: Some(flag.strip_prefix('~')?.into()),
                matches: TolerationMatch::Exists,
                effect: None,
            })
        };
        self.flags.iter().filter_map(toleration).collect()
    }
}

fn resource(key: &str) -> Option<Name> {
    match key {
        "gpu" => Some("example.com/gpu".into()),
        "cpu" | "memory" | "pods" => Some(key.into()),
        _ => None,
    }
}

fn shape(words: &Words<'_>) -> Arc<Shape> {
    let mut requests = words.amounts();
    requests.remove("pods");
    Arc::new(Shape {
        requests,
        node_selector: words.labels(),
        node_affinity: None,
        tolerations: words.tolerations(),
        neighbours: Some(demands(words)).filter(|demands| !demands.is_empty()).map(Arc::new),
        ..Shape::default()
    })
}

/// `apart=KEY:NAME` and the like, see `place::board`.
fn demands(words: &Words<'_>) -> Neighbours {
    let mut demands = Neighbours::default();
    for (key, value) in &words.values {
        places::demand(&mut demands, key, value);
    }
    demands
}

fn who(words: &Words<'_>) -> Arc<Who> {
    words.get("is").map(places::called).unwrap_or_default()
}

pub(crate) fn command(board: &mut Board, line: &str) {
    let (verb, words) = Words::of(line);
    match verb {
        "node" => node(board, &words),
        "nodegone" => board.untell(&format!("node {}", words.name), Event::NodeGone(words.name.into())),
        "topology" => board.tell(
            format!("topology {}", words.name),
            Event::Topology(Topology {
                name: words.name.into(),
                levels: words.flags.iter().map(|level| (*level).into()).collect(),
            }),
        ),
        "flavor" => board.tell(
            format!("flavor {}", words.name),
            Event::Flavor(Flavor {
                name: words.name.into(),
                node_labels: words.labels(),
                node_taints: words.taints(),
                tolerations: words.tolerations(),
                topology: words.get("topology").map(Into::into),
            }),
        ),
        "flavorgone" => board.untell(&format!("flavor {}", words.name), Event::FlavorGone(words.name.into())),
        "topologygone" => {
            board.untell(&format!("topology {}", words.name), Event::TopologyGone(words.name.into()))
        }
        "cohort" => board.tell(
            format!("cohort {}", words.name),
            Event::Cohort(Cohort {
                name: words.name.into(),
                parent: words.get("parent").map(Into::into),
                groups: groups(&words),
                weight_milli: 1000,
            }),
        ),
        "queue" => queue(board, &words),
        "queuegone" => {
            board.untell(&format!("queue {}", words.name), Event::ClusterQueueGone(words.name.into()))
        }
        "door" => door(board, words.name, words.get("queue").unwrap_or(words.name), stop(&words)),
        "doorgone" => {
            let (namespace, name) = ("ns".into(), words.name.into());
            board.untell(&format!("door {}", words.name), Event::LocalQueueGone { namespace, name });
        }
        "namespace" => board.tell(
            format!("namespace {}", words.name),
            Event::Namespace { name: words.name.into(), labels: words.labels() },
        ),
        "vqueue" => board.tell(
            format!("vqueue {}", words.name),
            Event::VolcanoQueue(VolcanoQueue {
                name: words.name.into(),
                parent: words.get("parent").map(Into::into),
                capability: words.amounts(),
                guarantee: words.kept(),
                priority: words.number("prio").unwrap_or(0),
                open: !words.has("closed"),
                invalid: None,
            }),
        ),
        _ => moving_parts(board, verb, &words, line),
    }
}

/// Gangs, pods, answers and time.
fn moving_parts(board: &mut Board, verb: &str, words: &Words<'_>, line: &str) {
    let name = words.name;
    match verb {
        "gang" => gang(board, words),
        "pod" => pod(board, words),
        "gone" => board.remove_pod(name),
        "done" => board.change_pod(name, |pod| pod.phase = PodPhase::Succeeded),
        "fail" => board.change_pod(name, |pod| pod.phase = PodPhase::Failed),
        "terminate" => board.change_pod(name, |pod| pod.terminating = true),
        "gate" => board.change_pod(name, |pod| pod.bindable = false),
        "seen" => {
            let node: Name = words.get("node").expect("seen POD node=N").into();
            board.change_pod(name, |pod| (pod.node, pod.phase) = (Some(node), PodPhase::Running));
        }
        "members" => {
            let most = words.flags.first().map_or(u32::MAX, |n| n.parse().expect("members GANG [n]"));
            board.create_members(name, most);
        }
        "follow" => board.follow(name),
        "inject" => _ = board.injected.insert(name.into(), words.amounts()),
        "count" => {
            let count = words.flags[0].parse().expect("count GANG n");
            board.change_gang(name, |gang| gang.pod_sets[0].count = count);
        }
        "change" => board.change_gang(name, |gang| {
            gang.minima = minima(words).or(gang.minima.take());
            gang.pod_sets[0].count = words.number("count").unwrap_or(gang.pod_sets[0].count);
        }),
        "prio" => {
            let priority = words.flags[0].parse().expect("prio GANG n");
            board.change_gang(name, |gang| gang.priority = priority);
        }
        "hold" => {
            let id = board.gangs[name].id.clone();
            let hold = board.engine.gangs[&id].hold.clone().expect("it holds something");
            board.write_hold(&hold.admission, &hold.victims.into_iter().collect::<Vec<_>>());
        }
        "off" => board.change_gang(name, |gang| gang.readiness = Readiness::Off(Off::Deactivated)),
        "checks" => board.change_gang(name, |gang| gang.readiness = Readiness::NotYet(NotYet::ChecksPending)),
        "ready" => board.change_gang(name, |gang| {
            gang.readiness = Readiness::Ready;
            gang.checks.clear();
        }),
        "retry" => board.change_gang(name, |gang| {
            gang.readiness = Readiness::Off(Off::CheckRetry("check a says so".into()));
        }),
        "podsready" => board.change_gang(name, |gang| {
            gang.pods_ready = PodsReady { shown: words.has("shown"), due: words.number("due") };
        }),
        "end" => board.end(name),
        "commit" => {
            let id = board.gangs[name].id.clone();
            let held = board.engine.gangs[&id].held.as_ref().expect("it holds something").admission.clone();
            board.commit(&held);
        }
        "uncommit" => {
            let id = board.gangs[name].id.clone();
            board.engine.confirm(Outcome::NotCommitted(id), board.now);
        }
        "bound" => board.engine.confirm(Outcome::Bound(name.into()), board.now),
        "unbound" => {
            let lost = words.has("lost");
            board.engine.confirm(Outcome::NotBound { pod: name.into(), lost }, board.now);
        }
        "undone" => board.carry_out_undo(&board.gangs[name].id.clone()),
        "takenback" => board.end_admission(&board.gangs[name].id.clone()),
        "planlost" => {
            let id = board.gangs[name].id.clone();
            board.plans.remove(&id);
            board.engine.apply(Event::PlanGone(id), board.now);
        }
        "auto" => {
            board.auto = Auto {
                commit: line.contains("commit") || line.contains("all"),
                members: line.contains("members") || line.contains("all"),
                bind: line.contains("bind") || line.contains("all"),
            }
        }
        "restart" => board.restart(),
        "wait" => board.wait(span(name)),
        "show" => {
            let picture = board.draw();
            board.log.push_str(&picture);
        }
        "usage" => usage(board),
        "doors" => doors(board),
        _ => panic!("what is {verb}?"),
    }
}

fn span(text: &str) -> Millis {
    match text.strip_suffix("ms") {
        Some(ms) => ms.parse().expect("milliseconds"),
        None => text.strip_suffix('s').expect("5s or 5ms").parse::<Millis>().expect("seconds") * 1000,
    }
}

fn node(board: &mut Board, words: &Words<'_>) {
    let mut allocatable = words.amounts();
    allocatable.entry("pods".into()).or_insert(110);
    board.tell(
        format!("node {}", words.name),
        Event::Node(Node {
            name: words.name.into(),
            labels: words.labels(),
            taints: words.taints(),
            unschedulable: words.has("cordoned"),
            ready: !words.has("notready"),
            allocatable,
        }),
    );
}

fn stop(words: &Words<'_>) -> StopPolicy {
    match (words.has("hold"), words.has("drain")) {
        (true, _) => StopPolicy::Hold,
        (_, true) => StopPolicy::HoldAndDrain,
        _ => StopPolicy::None,
    }
}

/// `gpu=4` is quota of the flavor `default`; `gpu@red=4,borrow=2,lend=1` names another flavor.
fn groups(words: &Words<'_>) -> Vec<ResourceGroup> {
    let mut flavors: Vec<FlavorQuotas> = Vec::new();
    for (key, value) in &words.values {
        let (resource_key, flavor) = key.split_once('@').unwrap_or((key, "default"));
        let Some(resource) = resource(resource_key) else { continue };
        let mut parts = value.split(',');
        let nominal = parts.next().unwrap_or_default().parse().expect("a quota");
        let limits: BTreeMap<&str, &str> = parts.filter_map(|part| part.split_once(':')).collect();
        let limit = |key: &str| limits.get(key).map(|limit| limit.parse().expect("a limit"));
        let quota =
            Quota { resource, nominal, borrowing_limit: limit("borrow"), lending_limit: limit("lend") };
        match flavors.iter_mut().find(|f| *f.flavor == *flavor) {
            Some(known) => known.quotas.push(quota),
            None => flavors.push(FlavorQuotas { flavor: flavor.into(), quotas: vec![quota] }),
        }
    }
    let mut groups: Vec<ResourceGroup> = Vec::new();
    for flavor in flavors {
        let covered: Vec<Name> = flavor.quotas.iter().map(|quota| quota.resource.clone()).collect();
        match groups.iter_mut().find(|group| group.covered == covered) {
            Some(group) => group.flavors.push(flavor),
            None => groups.push(ResourceGroup { covered, flavors: vec![flavor] }),
        }
    }
    groups
}

fn policy(text: &str) -> Policy {
    match text {
        "unified" => Policy::Unified,
        "topology" => Policy::TopologyOnly,
        "after" => Policy::AfterAdmission,
        "quota" => Policy::QuotaOnly,
        _ => panic!("policy={text}?"),
    }
}

fn queue(board: &mut Board, words: &Words<'_>) {
    let groups = groups(words);
    for flavor in groups.iter().flat_map(|group| &group.flavors) {
        let key = format!("flavor {}", flavor.flavor);
        if &*flavor.flavor == "default" && !board.facts.contains_key(&key) {
            command(board, "flavor default");
        }
    }
    board.tell(
        format!("queue {}", words.name),
        Event::ClusterQueue(ClusterQueue {
            name: words.name.into(),
            cohort: words.get("cohort").map(Into::into),
            namespace_selector: Some(match words.get("selects") {
                None => Vec::new(),
                Some(key) => vec![Expression { key: key.into(), op: Operator::Exists }],
            }),
            strategy: if words.has("strict") {
                QueueingStrategy::StrictFifo
            } else {
                QueueingStrategy::BestEffortFifo
            },
            stop: stop(words),
            groups,
            fungibility: Fungibility {
                stop_at_borrow: !words.has("trynext"),
                stop_at_preempt: words.has("mustpreempt"),
                prefer_preemption: words.has("ratherpreempt"),
            },
            preemption: preemption(words),
            weight_milli: 1000,
            placement: words.get("policy").map(policy),
            packing: words.get("packing").map(|word| match word {
                "Spread" => Packing::Spread,
                _ => Packing::Fragmentation,
            }),
            inactive: None,
        }),
    );
    if !board.facts.contains_key(&format!("door {}", words.name)) {
        door(board, words.name, words.name, StopPolicy::None);
    }
}

/// `within=lower` (or `newer`), `reclaim=any` (or `lower`), `whileborrowing=3`.
fn preemption(words: &Words<'_>) -> Preemption {
    let rule = |key: &str| match words.get(key) {
        None => Preemptible::Never,
        Some("lower") => Preemptible::LowerPriority,
        Some("newer") => Preemptible::LowerOrNewerEqual,
        Some("any") => Preemptible::Any,
        Some(other) => panic!("{key}={other}?"),
    };
    Preemption {
        within_queue: rule("within"),
        reclaim: rule("reclaim"),
        while_borrowing: words
            .number("whileborrowing")
            .map(|most| WhileBorrowing { priority_max: Some(most) }),
    }
}

fn door(board: &mut Board, name: &str, queue: &str, stop: StopPolicy) {
    board.tell(
        format!("door {name}"),
        Event::LocalQueue(LocalQueue {
            namespace: "ns".into(),
            name: name.into(),
            cluster_queue: queue.into(),
            stop,
        }),
    );
}

fn gang(board: &mut Board, words: &Words<'_>) {
    let mut topology = match (words.get("required"), words.get("preferred")) {
        (Some(level), _) => TopologyRequest::required(level.into()),
        (_, Some(level)) => TopologyRequest::preferred(level.into()),
        _ if words.has("unconstrained") => TopologyRequest::unconstrained(),
        _ => TopologyRequest::NONE,
    };
    if let Some((level, size)) = words.get("slice").and_then(|slice| slice.split_once(':')) {
        topology.slices.push(Slice { level: level.into(), size: size.parse().unwrap() });
    }
    topology.group = words.get("together").map(Into::into);
    let mut pod_sets: Vec<PodSet> = Vec::new();
    if let Some(count) = words.number("pods") {
        let (shape, topology) = (shape(words), topology.clone());
        let least = words.number("least");
        let who = who(words);
        pod_sets.push(PodSet {
            name: "main".into(),
            role: None,
            count,
            least,
            shape,
            charged: None,
            topology,
            who,
        });
    }
    let roles = minima(words).is_some_and(|minima| !minima.roles.is_empty());
    // `workers:4:gpu=2` would split at `=`: `workers:4:gpu` and `2`.
    for (key, value) in &words.values {
        let parts: Vec<&str> = key.split(':').collect();
        if let [set, count, what] = parts[..] {
            let requests =
                BTreeMap::from([(resource(what).expect("a resource"), value.parse().expect("a number"))]);
            pod_sets.push(PodSet {
                name: set.into(),
                // `worker-2` are other pods of the role `worker`.
                role: set.split('-').next().map(Into::into).filter(|_| roles),
                count: count.parse().expect("a count"),
                least: None,
                shape: Arc::new(Shape { requests, ..(*shape(words)).clone() }),
                charged: None,
                topology: topology.clone(),
                who: who(words),
            });
        }
    }
    if let Some(minima) = minima(words).filter(|_| roles) {
        board.groups.insert(words.name.into(), (pod_sets.clone(), minima));
    }
    let id: GangId = words.get("id").unwrap_or(words.name).into();
    let queued_at = words.number("at").unwrap_or(board.gangs.len() as Millis);
    board.tell_gang(Gang {
        id,
        namespace: words.get("ns").unwrap_or("ns").into(),
        name: words.name.into(),
        owners: vec![format!("owner-{}", words.name).into()],
        local_queue: words.get("queue").map(Into::into),
        volcano_queue: words.get("vqueue").map(Into::into),
        priority: words.number("prio").unwrap_or(0),
        queued_at,
        pod_sets,
        minima: minima(words),
        readiness: Readiness::Ready,
        checks: checks(words),
        policy: words.get("policy").map(policy),
        not_before: words.number("from").unwrap_or(0),
        foreign_scheduler: words.get("scheduler").map(Into::into),
        admitted: None,
        pods_ready: PodsReady::default(),
    });
}

/// `checks=f,g`: an admission check for the flavors `f` and `g`; `checks=all`: for all.
fn checks(words: &Words<'_>) -> BTreeSet<BTreeSet<Name>> {
    let flavors = words.get("checks").map(|flavors| match flavors {
        "all" => BTreeSet::new(),
        named => named.split(',').map(Into::into).collect(),
    });
    flavors.into_iter().collect()
}

/// `min=4 role:ps=1`: four in all, one of them of the role `ps`.
fn minima(words: &Words<'_>) -> Option<Minima> {
    let role = |(key, value): &(&str, &str)| {
        Some((key.strip_prefix("role:")?.into(), value.parse().expect("a number")))
    };
    let roles = words.values.iter().filter_map(role).collect();
    Some(Minima { members: words.number("min")?, roles })
}

fn pod(board: &mut Board, words: &Words<'_>) {
    let node: Option<Name> = words.get("node").map(Into::into);
    board.tell_pod(Pod {
        uid: words.name.into(),
        namespace: "ns".into(),
        name: words.name.into(),
        phase: if node.is_some() { PodPhase::Running } else { PodPhase::Pending },
        node,
        shape: shape(words),
        who: who(words),
        owner: words.get("of").map(|gang| format!("owner-{gang}").into()),
        pod_set: words.get("set").map(Into::into),
        role: words.get("role").map(Into::into),
        index: words.number("index"),
        terminating: false,
        bindable: !words.has("gated"),
    });
}

/// What the ClusterQueues that changed show.
fn usage(board: &mut Board) {
    for status in board.engine.changed_cluster_queues() {
        let counts = [status.pending, status.reserving, status.admitted];
        account(board, &status.name, counts, &status.usage, status.inactive.as_ref());
    }
}

/// What the LocalQueues that changed show.
fn doors(board: &mut Board) {
    for status in board.engine.changed_local_queues() {
        let counts = [status.pending, status.reserving, status.admitted];
        account(board, &status.name, counts, &status.usage, status.inactive.as_ref());
    }
}

fn account(
    board: &mut Board,
    name: &Name,
    [pending, reserving, admitted]: [u32; 3],
    usage: &[FlavorUsage],
    inactive: Option<&QueueInactive>,
) {
    let log = &mut board.log;
    let _ = write!(log, "  {name}: {pending} pending, {reserving} reserving, {admitted} admitted;");
    for usage in usage {
        let resource = usage.resource.rsplit('/').next().unwrap_or_default();
        let _ = write!(log, " {resource}@{} {}", usage.flavor, usage.total);
        if usage.borrowed != 0 {
            let _ = write!(log, " ({} borrowed)", usage.borrowed);
        }
    }
    match inactive {
        Some(why) => _ = writeln!(log, " inactive: {why:?}"),
        None => log.push('\n'),
    }
}
