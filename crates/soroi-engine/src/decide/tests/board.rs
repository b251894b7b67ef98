//! A small world around the engine: objects, the owner that creates pods, the API that binds them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::cluster::Occupant;
use crate::decision::{Admission, Decision, Settings};
use crate::engine::Engine;
use crate::event::*;
use crate::minima::Minima;
use crate::preempt::Cause;
use crate::reason::{NotYet, Preempted, UndoReason};

/// What answers the engine's decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Auto {
    /// Commits are confirmed, undos carried out.
    pub(crate) commit: bool,
    /// The owner creates the members of admitted gangs.
    pub(crate) members: bool,
    /// Bindings are accepted and seen.
    pub(crate) bind: bool,
}

impl Auto {
    pub(crate) const ALL: Self = Self { commit: true, members: true, bind: true };
}

/// The world.
#[derive(Clone)]
pub(crate) struct Board {
    pub(crate) engine: Engine,
    pub(crate) settings: Settings,
    pub(crate) now: Millis,
    pub(crate) auto: Auto,
    /// Of groups with roles: what their pods are made of, and their minima before any ended.
    pub(crate) groups: BTreeMap<Name, (Vec<PodSet>, Minima)>,
    /// What is known of every object now, by kind and name.
    pub(crate) facts: BTreeMap<String, Event>,
    pub(crate) gangs: BTreeMap<Name, Gang>,
    pub(crate) pods: BTreeMap<Name, Pod>,
    pub(crate) plans: BTreeMap<GangId, Plan>,
    /// What real pods of a gang ask beyond their template.
    pub(crate) injected: BTreeMap<Name, BTreeMap<Name, Amount>>,
    /// What was decided, and everything of it.
    pub(crate) log: String,
    pub(crate) decisions: Vec<Decision>,
    /// Decisions that nobody has answered yet.
    pub(crate) open: Vec<Decision>,
    /// Per gang, the number of its next member: names are not used twice.
    pub(crate) created: BTreeMap<Name, u32>,
}

impl Board {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        let mut board = Self {
            engine: Engine::new(settings.clone()),
            settings,
            now: 0,
            auto: Auto::ALL,
            groups: BTreeMap::new(),
            facts: BTreeMap::new(),
            gangs: BTreeMap::new(),
            pods: BTreeMap::new(),
            plans: BTreeMap::new(),
            injected: BTreeMap::new(),
            log: String::new(),
            decisions: Vec::new(),
            open: Vec::new(),
            created: BTreeMap::new(),
        };
        board.tell("namespace ns", Event::Namespace { name: "ns".into(), labels: Labels::new() });
        board
    }

    /// Tells the engine a fact, and remembers it for restarts.
    pub(crate) fn tell(&mut self, key: impl Into<String>, event: Event) {
        self.facts.insert(key.into(), event.clone());
        self.engine.apply(event, self.now);
    }

    /// Tells the engine that an object is gone.
    pub(crate) fn untell(&mut self, key: &str, event: Event) {
        self.facts.remove(key);
        self.engine.apply(event, self.now);
    }

    pub(crate) fn tell_gang(&mut self, gang: Gang) {
        self.gangs.insert(gang.name.clone(), gang.clone());
        self.tell(format!("gang {}", gang.name), Event::Gang(gang));
    }

    pub(crate) fn tell_pod(&mut self, pod: Pod) {
        self.pods.insert(pod.name.clone(), pod.clone());
        self.tell(format!("pod {}", pod.name), Event::Pod(pod));
    }

    pub(crate) fn remove_pod(&mut self, name: &str) {
        if let Some(pod) = self.pods.remove(name) {
            self.untell(&format!("pod {name}"), Event::PodGone(pod.uid));
            self.collect_plans();
        }
    }

    pub(crate) fn change_pod(&mut self, name: &str, change: impl FnOnce(&mut Pod)) {
        let mut pod = self.pods.get(name).unwrap_or_else(|| panic!("no pod {name}")).clone();
        change(&mut pod);
        self.tell_pod(pod);
        self.collect_plans();
    }

    pub(crate) fn change_gang(&mut self, name: &str, change: impl FnOnce(&mut Gang)) {
        let mut gang = self.gangs.get(name).unwrap_or_else(|| panic!("no gang {name}")).clone();
        change(&mut gang);
        self.tell_gang(gang);
    }

    /// A new engine that is told everything that is known, in this order of kinds.
    pub(crate) fn restart(&mut self) {
        self.engine = Engine::new(self.settings.clone());
        for event in self.facts.values().cloned().collect::<Vec<_>>() {
            self.engine.apply(event, self.now);
        }
        for plan in self.plans.values().cloned().collect::<Vec<_>>() {
            let id = plan.gang.clone();
            self.engine.apply(Event::Plan(plan), self.now);
            if !self.gangs.values().any(|gang| gang.id == id) {
                self.engine.apply(Event::GangGone(id), self.now);
            }
        }
    }

    /// Decides, and answers as `auto` says, until nothing is decided any more.
    pub(crate) fn settle(&mut self) {
        for _ in 0..100 {
            let before = self.engine.clone();
            let decisions = self.engine.decide(self.now);
            let mut violations = self.engine.check(self.now).err().unwrap_or_default();
            violations
                .extend(self.engine.check_decisions(&before, &decisions, self.now).err().unwrap_or_default());
            if !violations.is_empty() {
                decisions.iter().for_each(|decision| self.note(decision));
                panic!("{}\nviolated: {violations:#?}", self.log);
            }
            if decisions.is_empty() {
                return;
            }
            for decision in decisions {
                self.note(&decision);
                self.answer(&decision);
                self.decisions.push(decision);
            }
        }
        panic!("{}\nthe engine does not come to rest", self.log);
    }

    /// Lets time pass, stopping wherever the engine wants to be asked.
    pub(crate) fn wait(&mut self, span: Millis) {
        let end = self.now + span;
        while let Some(next) = self.engine.next_wakeup().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.settle();
        }
        self.now = end;
        self.settle();
    }

    fn gang_named(&self, id: &GangId) -> Name {
        let gang = self.gangs.values().find(|gang| gang.id == *id);
        gang.map_or_else(|| id.clone(), |gang| gang.name.clone())
    }

    fn note(&mut self, decision: &Decision) {
        let line = match decision {
            Decision::Admit(admission) => format!("admit {}", self.admission(admission)),
            Decision::Place(admission) => format!("place {}", self.admission(admission)),
            Decision::Hold { admission, victims } => {
                let named = |(id, cause): &(GangId, Cause)| format!("{} ({cause:?})", self.gang_named(id));
                let victims: Vec<String> = victims.iter().map(named).collect();
                format!("hold {}; until these leave: {}", self.admission(admission), victims.join(", "))
            }
            Decision::HoldEnded(id) => format!("hold no more for {}", self.gang_named(id)),
            Decision::Bind { pod, node, .. } => format!("bind {pod} to {node}"),
            Decision::Settled(id) => format!("settled {}", self.gang_named(id)),
            Decision::Undo { gang, reason: UndoReason::Preempted(preempted), .. } => {
                let Preempted { by, cause, by_path, path, .. } = preempted;
                let (gang, by) = (self.gang_named(gang), self.gang_named(by));
                format!("evict {gang} for {by}: {cause:?}, {path} for {by_path}")
            }
            Decision::Undo { gang, reason, started } => {
                let when = if *started { " after its start" } else { "" };
                format!("undo {}{when}: {reason:?}", self.gang_named(gang))
            }
            Decision::Pending { gang, reason } => format!("pending {}: {reason}", self.gang_named(gang)),
        };
        let _ = writeln!(self.log, "  {line}");
    }

    fn admission(&self, admission: &Admission) -> String {
        let mut text = self.gang_named(&admission.gang).to_string();
        for set in &admission.pod_sets {
            let flavors: std::collections::BTreeSet<&Name> = set.flavors.values().collect();
            let flavors: Vec<&str> = flavors.into_iter().map(|name| &**name).collect();
            let _ = write!(text, "; {}x{}", set.name, set.count);
            if !flavors.is_empty() {
                let _ = write!(text, " [{}]", flavors.join("+"));
            }
            for (node, count) in &set.nodes {
                let _ = write!(text, " {node}*{count}");
            }
        }
        text
    }

    fn answer(&mut self, decision: &Decision) {
        match decision {
            Decision::Admit(admission) | Decision::Place(admission) if self.auto.commit => {
                self.commit(admission)
            }
            Decision::Hold { admission, victims } if self.auto.commit => self.write_hold(admission, victims),
            Decision::HoldEnded(id) => {
                if self.plans.remove(id).is_some() {
                    self.engine.apply(Event::PlanGone(id.clone()), self.now);
                }
            }
            Decision::Bind { pod, node, .. } if self.auto.bind => self.bind(pod, node, false),
            Decision::Settled(id) => {
                if let Some(plan) = self.plans.get_mut(id) {
                    plan.phase = PlanPhase::Settled;
                }
                self.echo_plan(&id.clone());
            }
            Decision::Undo { gang, .. } => {
                if let Some(plan) = self.plans.get_mut(gang) {
                    plan.phase = PlanPhase::Undoing;
                }
                self.echo_plan(&gang.clone());
                match self.auto.commit {
                    true => self.carry_out_undo(&gang.clone()),
                    false => self.open.push(decision.clone()),
                }
            }
            Decision::Admit(_) | Decision::Place(_) | Decision::Bind { .. } | Decision::Hold { .. } => {
                self.open.push(decision.clone())
            }
            Decision::Pending { .. } => {}
        }
    }

    /// The API server takes the binding, unless the pod cannot be bound any more.
    pub(crate) fn bind(&mut self, pod: &PodUid, node: &Name, seen_first: bool) {
        let bindable =
            self.pods.get(&**pod).is_some_and(|pod| pod.node.is_none() && pod.is_live() && pod.bindable);
        if !bindable {
            self.engine.confirm(Outcome::NotBound { pod: pod.clone(), lost: true }, self.now);
            return;
        }
        if !seen_first {
            self.engine.confirm(Outcome::Bound(pod.clone()), self.now);
        }
        let to = node.clone();
        self.change_pod(pod, |pod| (pod.node, pod.phase) = (Some(to), PodPhase::Running));
        if seen_first {
            self.engine.confirm(Outcome::Bound(pod.clone()), self.now);
        }
    }

    /// The hold is written down.
    pub(crate) fn write_hold(&mut self, admission: &Admission, victims: &[(GangId, Cause)]) {
        let id = admission.gang.clone();
        // Whoever carries it out has heard of what was decided since.
        let holds = self.engine.gangs.get(&id).and_then(|state| state.hold.as_ref());
        if holds.is_none_or(|hold| hold.admission != *admission)
            || !self.gangs.contains_key(&self.gang_named(&id))
        {
            return;
        }
        if admission.policy.soroi_binds() {
            let owners = self.gangs[&self.gang_named(&id)].owners.clone();
            let (phase, progressed_at) = (PlanPhase::Holding, self.now);
            let (admission, victims) = (admission.clone(), victims.to_vec());
            let plan = Plan { gang: id.clone(), owners, phase, admission, progressed_at, victims };
            self.plans.insert(id.clone(), plan);
        }
        self.engine.confirm(Outcome::Committed(id.clone()), self.now);
        self.echo_plan(&id);
    }

    /// The admission is written down.
    pub(crate) fn commit(&mut self, admission: &Admission) {
        let id = admission.gang.clone();
        let name = self.gang_named(&id);
        let Some(gang) = self.gangs.get(&name).cloned() else {
            self.engine.confirm(Outcome::NotCommitted(id), self.now);
            return;
        };
        let placed = admission.pod_sets.iter().any(|set| !set.nodes.is_empty());
        let parked = admission.policy == Policy::Unified && !placed;
        if admission.policy.soroi_binds() && !parked {
            let plan = Plan {
                gang: id.clone(),
                owners: gang.owners.clone(),
                phase: PlanPhase::Committed,
                admission: admission.clone(),
                progressed_at: self.now,
                victims: Vec::new(),
            };
            self.plans.insert(id.clone(), plan);
        }
        if let Some(cluster_queue) = &admission.cluster_queue {
            let sets = admission.pod_sets.iter();
            let topology =
                sets.clone().filter_map(|set| Some((set.name.clone(), set.topology.clone()?))).collect();
            let admitted = Admitted {
                cluster_queue: cluster_queue.clone(),
                reserved_at: self.now,
                leaving: false,
                pod_sets: sets.map(|set| (set.name.clone(), set.count, set.flavors.clone())).collect(),
                topology,
            };
            self.change_gang(&name, |gang| {
                gang.admitted = Some(admitted);
                if parked {
                    gang.readiness = Readiness::NotYet(NotYet::ChecksPending);
                }
            });
        }
        self.engine.confirm(Outcome::Committed(id.clone()), self.now);
        self.echo_plan(&id);
        if self.auto.members && !parked {
            self.create_members(&name, u32::MAX);
        }
    }

    /// The watch shows the plan as it is now.
    fn echo_plan(&mut self, id: &GangId) {
        if let Some(plan) = self.plans.get(id).cloned() {
            self.engine.apply(Event::Plan(plan), self.now);
        }
    }

    /// The objects of a gang are deleted. Its plan stays until its last bound pod is gone.
    pub(crate) fn end(&mut self, name: &str) {
        let gang = self.gangs.remove(name).unwrap_or_else(|| panic!("no gang {name}"));
        self.untell(&format!("gang {name}"), Event::GangGone(gang.id));
        self.collect_plans();
    }

    fn collect_plans(&mut self) {
        let runs = |plan: &Plan| {
            let mine = |pod: &&Pod| pod.owner.as_ref().is_some_and(|owner| plan.owners.contains(owner));
            self.pods.values().filter(mine).any(|pod| pod.occupies().is_some())
        };
        let known: Vec<GangId> = self.gangs.values().map(|gang| gang.id.clone()).collect();
        let over: Vec<GangId> = self
            .plans
            .iter()
            .filter(|(id, plan)| !known.contains(id) && !runs(plan))
            .map(|(id, _)| id.clone())
            .collect();
        for id in over {
            self.plans.remove(&id);
            self.engine.apply(Event::PlanGone(id), self.now);
        }
    }

    /// The owner is suspended: its pods are deleted, the template is restored, the plan removed.
    pub(crate) fn carry_out_undo(&mut self, id: &GangId) {
        let name = self.gang_named(id);
        let owner = self.gangs.get(&name).map(|gang| gang.owners.clone()).unwrap_or_default();
        let members: Vec<Name> = self
            .pods
            .values()
            .filter(|pod| pod.owner.as_ref().is_some_and(|of| owner.contains(of)))
            .map(|pod| pod.name.clone())
            .collect();
        members.iter().for_each(|pod| self.remove_pod(pod));
        self.end_admission(id);
    }

    /// The admission is taken back while its pods are still on their way out.
    pub(crate) fn end_admission(&mut self, id: &GangId) {
        let name = self.gang_named(id);
        if self.gangs.contains_key(&name) {
            self.change_gang(&name, |gang| {
                gang.admitted = None;
                gang.pods_ready = PodsReady::default();
            });
        }
        self.engine.confirm(Outcome::Undone(id.clone()), self.now);
        if self.plans.remove(id).is_some() {
            self.engine.apply(Event::PlanGone(id.clone()), self.now);
        }
    }

    /// The owner creates pods until each pod set has as many as it asks for, at most `most`.
    pub(crate) fn create_members(&mut self, name: &str, most: u32) {
        let gang = self.gangs[name].clone();
        let admitted = gang.admitted.clone();
        let mut left = most;
        let group = self.groups.get(name).map(|(sets, _)| sets.clone());
        for set in group.as_ref().unwrap_or(&gang.pod_sets) {
            let mine = |pod: &&Pod| {
                pod.owner.as_ref() == gang.owners.first()
                    && is_member_of(&gang, &set.name, pod)
                    && !matches!(pod.phase, PodPhase::Failed | PodPhase::Succeeded)
                    && !pod.terminating
            };
            let there = self.pods.values().filter(mine).count();
            for _ in there..set.count as usize {
                if left == 0 {
                    return;
                }
                left -= 1;
                let mut shape = (*set.shape).clone();
                for (resource, more) in self.injected.get(name).into_iter().flatten() {
                    *shape.requests.entry(resource.clone()).or_default() += more;
                }
                let flavors = admitted.iter().flat_map(|a| &a.pod_sets).filter(|s| s.0 == set.name);
                for flavor in flavors.flat_map(|s| s.2.values()) {
                    if let Some(Event::Flavor(flavor)) = self.facts.get(&format!("flavor {flavor}")) {
                        shape.node_selector.extend(flavor.node_labels.clone());
                    }
                }
                let single = gang.pod_sets.len() == 1 && group.is_none();
                let member_name = |n: u32| match single {
                    true => format!("{}-{n}", gang.name).into(),
                    false => format!("{}-{}-{n}", gang.name, set.name).into(),
                };
                let free = |n: &u32| !self.pods.contains_key::<Name>(&member_name(*n));
                let number = self.created.get(name).copied().unwrap_or(0);
                let number = (number..).find(free).expect("there are numbers enough");
                self.created.insert(name.into(), number + 1);
                let pod_name: Name = member_name(number);
                self.tell_pod(Pod {
                    uid: pod_name.clone(),
                    namespace: gang.namespace.clone(),
                    name: pod_name,
                    node: None,
                    shape: Arc::new(shape),
                    who: set.who.clone(),
                    owner: gang.owners.first().cloned(),
                    // Pods of a group name no pod set.
                    pod_set: Some(set.name.clone()).filter(|_| group.is_none()),
                    role: set.role.clone(),
                    index: None,
                    phase: PodPhase::Pending,
                    terminating: false,
                    bindable: true,
                });
            }
        }
    }

    /// A group is what its pods are: pod sets of those that live, minima without those that have done
    /// their part.
    pub(crate) fn follow(&mut self, name: &str) {
        let (Some((sets, minima)), Some(gang)) = (self.groups.get(name), self.gangs.get(name)) else {
            return;
        };
        let (gang, minima) = (gang.clone(), minima.clone());
        let of = |set: &PodSet, counts: &dyn Fn(&Pod) -> bool| {
            let mine =
                |pod: &&Pod| pod.owner == gang.owners.first().cloned() && is_member_of(&gang, &set.name, pod);
            self.pods.values().filter(mine).filter(|pod| counts(pod)).count() as u32
        };
        let done =
            sets.iter().map(|set| (set.role.as_ref(), of(set, &|pod| pod.phase == PodPhase::Succeeded)));
        let mut left = minima.beside(done);
        left.members = left.members.max(1);
        let live = sets.iter().map(|set| PodSet { count: of(set, &Pod::is_live), ..set.clone() });
        let live: Vec<PodSet> = live.filter(|set| set.count > 0).collect();
        if !live.is_empty() {
            self.change_gang(name, |gang| (gang.pod_sets, gang.minima) = (live, Some(left)));
        }
    }

    /// The picture: each node with what takes it, each gang with how it is.
    pub(crate) fn draw(&self) -> String {
        let mut picture = String::new();
        for event in self.facts.values() {
            let Event::Node(node) = event else { continue };
            let mut who: Vec<String> = Vec::new();
            for pod in self.pods.values().filter(|pod| pod.occupies() == Some(&node.name)) {
                who.push(pod.name.to_string());
            }
            for (id, state) in &self.engine.gangs {
                let Some(held) = &state.held else { continue };
                let name = self.gang_named(id);
                let here = held.seats().filter(|(at, _)| {
                    self.engine.cluster.node_of(&super::super::gather::occupant(id, *at)) == Some(&node.name)
                });
                who.extend(here.map(|_| format!("({name})")));
            }
            let flags = match (node.ready, node.unschedulable) {
                (false, _) => " not ready",
                (_, true) => " cordoned",
                _ => "",
            };
            let _ = writeln!(picture, "  {}{flags}: {}", node.name, who.join(" "));
        }
        for gang in self.gangs.values() {
            let line = match self.engine.gangs.get(&gang.id).and_then(|state| state.held.as_ref()) {
                Some(held) => {
                    let phase = format!("{:?}", held.phase).to_lowercase();
                    let phase = phase.split(['(', ' ']).next().unwrap_or_default().to_owned();
                    format!("{phase}, {} running", held.running_or_done())
                }
                None => match self.engine.reason(&gang.id) {
                    Some(reason) => format!("pending: {reason}"),
                    None => "unknown".to_owned(),
                },
            };
            let _ = writeln!(picture, "  {}: {line}", gang.name);
        }
        picture
    }

    /// Whether a pod is charged to a node.
    #[allow(dead_code, reason = "used by some of the stories")]
    pub(crate) fn charged(&self, pod: &str) -> Option<&Name> {
        self.engine.cluster.node_of(&Occupant::Pod(pod.into()))
    }
}

/// Whether a pod was made for this pod set.
fn is_member_of(gang: &Gang, set: &str, pod: &Pod) -> bool {
    let number = pod.name.strip_prefix(&format!("{}-{set}-", gang.name));
    match &pod.pod_set {
        Some(named) => &**named == set,
        None => number.is_some_and(|number| number.parse::<u32>().is_ok()),
    }
}
