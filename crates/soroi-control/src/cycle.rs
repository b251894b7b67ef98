//! The loop: take in, decide, carry out, again. Sequential, so that the same input in the same
//! order gives the same decisions and requests.
//!
//! Knows the order of things. What objects mean, what is decided and what has to be written is
//! known elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use soroi_api::conditions;
use soroi_api::plan::PlanUndo;
use soroi_clock::Clock;
use soroi_engine::event::{Event, GangId, Millis, Outcome, Policy, Readiness};
use soroi_engine::reason::{NotYet, Off, UndoReason};
use soroi_engine::{Decision, Engine};

use crate::call::{Api, Call};
use crate::carry::{self, Reached, Scene};
use crate::config::Config;
use crate::course::{Course, Stage, Told};
use crate::events::Reasons;
use crate::intake::Schedulers;
use crate::intake::pod::without_numbers;
use crate::kind::Kind;
use crate::lanes::{Done, Lanes, Write};
use crate::parsed::{self, Context};
use crate::queues::{Larger, Queues};
use crate::reins::Reins;
use crate::spoken;
use crate::voice::Voice;
use crate::watches::Watches;
use crate::world::World;
use crate::world::gang::Composed;
use crate::world::root::Root;
use crate::{Error, project};

mod agenda;
mod answers;
mod missing;
mod orphans;
mod preempted;
mod rests;
mod unmade;
mod wishes;

use agenda::Agenda;
use missing::Missing;
use orphans::Orphans;
use rests::Rests;
use unmade::Unmade;
use wishes::lane;

/// How many batches are taken in before a decision, if there are so many: decisions are better and
/// cheaper with all that is known, but must not wait for a cluster that never is quiet.
const BATCHES_MAX: usize = 32;

/// How often decisions may follow from what was just carried out before the world is looked at
/// again. Two rounds are the rule.
const ROUNDS_MAX: usize = 16;

/// How long after a start nothing is decided while the Workload of a half-bound group cannot be made.
/// Longer than a few lost requests take; a server that answers nothing else but errors is not waited
/// for, or one group would hold up all.
const HALF_BOUND_WAIT_MAX: SignedDuration = SignedDuration::from_secs(30);

/// A gang with the objects that it is made of, and how far it is.
struct Unit {
    composed: Composed,
    course: Course,
}

/// Groups that a start found half bound.
struct HalfBound {
    groups: BTreeSet<Root>,
    /// When they are waited for no longer.
    until: Timestamp,
}

/// The state of the loop.
pub(crate) struct Cycle {
    clock: Clock,
    config: Config,
    context: Arc<Context>,
    watches: Watches,
    lanes: Lanes,
    world: World,
    engine: Engine,
    queues: Queues,
    reasons: Reasons<(&'static str, String), Told>,
    voice: Voice,
    units: BTreeMap<Root, Unit>,
    gangs: BTreeMap<GangId, Root>,
    orphans: Orphans,
    missing: Missing,
    /// When gangs that may run for so long have to end, and what is over has to go.
    deadlines: Agenda<Millis>,
    rests: Rests,
    unmade: Unmade,
    /// Roots for which the next writes have to be found.
    todo: BTreeSet<Root>,
    /// The engine was told that a step stands, and has not been asked since.
    confirmed: bool,
    /// Groups that were half bound before this start, while they cannot be decided for;
    /// `None`: not looked for yet.
    half_bound: Option<HalfBound>,
    reins: Reins,
}

enum Happened {
    Answered(Done),
    Changed(Vec<(Kind, soroi_watch::Change<parsed::Parsed>)>),
    Time,
}

impl Cycle {
    pub(crate) fn new(client: kube::Client, clock: Clock, config: Config, reins: Reins) -> Self {
        let schedulers = Schedulers { volcano: config.serve_volcano, ..Schedulers::default() };
        let context = Arc::new(Context {
            schedulers,
            charging: config.charging.clone(),
            defaults: Default::default(),
            shared: Default::default(),
        });
        let timeout = Duration::from_millis(config.request_timeout_ms);
        let api = Api::new(client.clone(), clock.clone(), timeout, Arc::clone(&context));
        Self {
            watches: Watches::start(client.clone(), clock.clone(), Arc::clone(&context), config.seed),
            lanes: Lanes::new(api, config.writes_in_flight, config.seed),
            world: World::new(Arc::clone(&context), &config),
            engine: Engine::new(config.settings.clone()),
            queues: Queues::default(),
            reasons: Reasons::new(
                SignedDuration::from_millis(config.reason_refresh_ms),
                config.refreshes_per_second,
                clock.now(),
            ),
            voice: Voice::new(client.clone(), &config.instance),
            units: BTreeMap::new(),
            gangs: BTreeMap::new(),
            orphans: Orphans::default(),
            missing: Missing::default(),
            deadlines: Agenda::default(),
            rests: Rests::default(),
            unmade: Unmade::default(),
            todo: BTreeSet::new(),
            confirmed: false,
            half_bound: None,
            reins,
            clock,
            config,
            context,
        }
    }

    pub(crate) async fn run(mut self) -> Result<(), Error> {
        loop {
            let happened = self.next().await;
            self.take(happened);
            for _ in 1..BATCHES_MAX {
                let Some(happened) = self.waiting() else { break };
                self.take(happened);
            }
            self.world.set_admission(self.reins.admission_works());
            self.compose();
            let stops = self.reins.stops();
            if self.watches.are_listed() {
                self.act(stops);
                self.world.begin(self.config.epoch);
            }
            self.lanes.pump(self.clock.now_millis());
            let busy = !self.lanes.is_idle();
            self.voice.pump(self.clock.now(), busy);
            if stops && self.lanes.is_idle() {
                return Ok(());
            }
        }
    }

    /// Decides and carries out. What is seen to stand while carrying out may lead to more: a commit
    /// to bindings of pods that exist, an undo to another gang's turn.
    fn act(&mut self, stops: bool) {
        let now = self.clock.now_millis();
        for gang in self.orphans.changed() {
            // A plan is all that is left of it: it holds what its pods still do, and nothing else.
            self.engine.apply(Event::GangGone(gang.clone()), now);
        }
        for root in self.missing.take_due(self.clock.now()) {
            self.miss(root);
        }
        self.todo.extend(self.deadlines.take_due(now));
        for _ in 0..ROUNDS_MAX {
            if !stops && !self.waits_for_half_bound() {
                self.decide();
                self.tell();
            }
            self.carry();
            if !std::mem::take(&mut self.confirmed) {
                break;
            }
        }
    }

    /// Whether a decision now could give away what a group that was half bound before this start
    /// needs to become whole. Its Workload is being made; until that is answered, nothing says that
    /// its pods belong together.
    fn waits_for_half_bound(&mut self) -> bool {
        let now = self.clock.now();
        let mut found = self.half_bound.take().unwrap_or_else(|| {
            let bound = |root: &&Root| self.world.has_bound_members(root);
            let until = now.saturating_add(HALF_BOUND_WAIT_MAX).unwrap_or(Timestamp::MAX);
            HalfBound { groups: self.units.keys().filter(bound).cloned().collect(), until }
        });
        found.groups.retain(|root| {
            let behind = Readiness::NotYet(NotYet::WorkloadBehind);
            let asks = |write: &Write| write.target.kind == Kind::Workload;
            self.units.get(root).is_some_and(|unit| unit.composed.gang.readiness == behind)
                && self.job_writes(root, now).iter().any(asks)
        });
        if now >= found.until {
            for group in std::mem::take(&mut found.groups) {
                tracing::warn!(
                    ?group,
                    "half bound at the start, and its Workload cannot be made: not waited for any longer"
                );
            }
        }
        self.half_bound.insert(found).groups.first().is_some()
    }

    /// Waits for the next thing to happen.
    async fn next(&mut self) -> Happened {
        let half_bound = self.half_bound.as_ref().filter(|found| !found.groups.is_empty());
        // Whoever decides nothing now must not wait for a time at which it would.
        let decides = self.watches.are_listed() && half_bound.is_none() && !self.reins.stops();
        let due = [
            decides.then(|| self.engine.next_wakeup()).flatten(),
            decides.then(|| self.missing.next_due()).flatten().map(|due| due.as_millisecond()),
            self.watches.are_listed().then(|| self.deadlines.next()).flatten(),
            self.lanes.next_due(),
            self.voice.next_due(!self.lanes.is_idle()),
            self.watches.are_listed().then(|| self.rests.next_due(!self.lanes.is_idle())).flatten(),
            self.queues.next_due(),
            decides.then(|| self.reasons.next_due()).flatten().map(|when| when.as_millisecond()),
            half_bound.map(|found| found.until.as_millisecond()),
        ];
        let due = due.into_iter().flatten().min();
        let due = due.map(|due| Timestamp::from_millisecond(due).unwrap_or(Timestamp::MAX));
        let clock = &self.clock;
        let time = async move {
            match due {
                Some(due) => clock.sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            done = self.lanes.next() => Happened::Answered(done),
            changes = self.watches.next() => Happened::Changed(changes),
            () = time => Happened::Time,
            () = self.voice.free() => Happened::Time,
            () = self.reins.changed() => Happened::Time,
        }
    }

    /// What has happened already.
    fn waiting(&mut self) -> Option<Happened> {
        if let Some(done) = self.lanes.next().now_or_never() {
            return Some(Happened::Answered(done));
        }
        self.watches.next().now_or_never().map(Happened::Changed)
    }

    fn take(&mut self, happened: Happened) {
        match happened {
            Happened::Answered(done) => self.answered(&done),
            Happened::Changed(changes) => {
                for (kind, change) in changes {
                    self.world.take(kind, change);
                }
            }
            Happened::Time => {}
        }
    }

    /// Puts together anew what has changed, and tells the engine.
    fn compose(&mut self) {
        let now = self.clock.now_millis();
        let dirty = self.world.take_dirty();
        for complaint in self.world.take_complaints() {
            self.voice.say(spoken::invalid(&complaint), self.clock.now());
        }
        for event in self.world.take_events() {
            if let Event::ClusterQueueGone(name) = &event {
                self.reins.observer.cluster_queue_gone(name);
            }
            self.engine.apply(event, now);
        }
        for root in dirty {
            match root {
                Root::Plan(gang) => match self.gangs.get(&gang).cloned() {
                    Some(root) => self.compose_root(root, now),
                    None => {
                        self.orphans.change(gang);
                    }
                },
                root => self.compose_root(root, now),
            }
        }
        self.orphans.owners_moved(&self.world.take_moved());
        for root in self.world.take_looked() {
            self.look_at(root);
        }
        if self.world.take_redefined() {
            for root in self.unmade.all_may_differ() {
                self.compose_root(root, now);
            }
        }
        for target in self.world.take_stale() {
            self.lanes.set(&format!("read/{target}").into(), vec![Write { target, call: Call::Read }]);
        }
    }

    fn compose_root(&mut self, root: Root, now: Millis) {
        let mut composed = self.world.gang_of(&root);
        if let Some(composed) = &mut composed
            && composed.gang.readiness == Readiness::NotYet(NotYet::WorkloadBehind)
            && let Some(why) = self.unmade.why(&root)
        {
            composed.gang.readiness = Readiness::NotYet(NotYet::Invalid(why.clone()));
        }
        let before = self.units.get(&root).map(|unit| unit.composed.gang.id.clone());
        if let Some(gone) = before
            && composed.as_ref().is_none_or(|composed| composed.gang.id != gone)
        {
            self.units.remove(&root);
            self.gangs.remove(&gone);
            self.engine.apply(Event::GangGone(gone.clone()), now);
            self.reasons.forget(&gone);
            self.queues.larger(&gone, None, self.clock.now());
            self.orphans.change(gone);
        }
        let until = composed.as_ref().and_then(|composed| self.world.runs_until(&composed.parts));
        let kept = self.world.kept(&root, self.config.retention).map(|kept| kept.until);
        self.deadlines.set(&root, until.into_iter().chain(kept).min());
        if let Some(composed) = composed {
            let id = composed.gang.id.clone();
            self.orphans.forget(&id);
            self.gangs.insert(id, root.clone());
            match self.units.get_mut(&root) {
                Some(unit) => {
                    if unit.composed.gang != composed.gang {
                        self.engine.apply(Event::Gang(composed.gang.clone()), now);
                    }
                    unit.composed = composed;
                }
                None => {
                    self.engine.apply(Event::Gang(composed.gang.clone()), now);
                    self.units.insert(root.clone(), Unit { composed, course: Course::default() });
                }
            }
            self.adopt(&root);
        }
        match self.world.waits_for_its_group(&root) {
            true => self.missing.wait(&root, self.clock.now()),
            false => self.missing.end(&root),
        }
        self.todo.insert(root);
    }

    /// Takes up what an earlier run left: the engine read the same records.
    fn adopt(&mut self, root: &Root) {
        let Some(unit) = self.units.get_mut(root) else { return };
        if unit.course.stage != Stage::Waiting {
            return;
        }
        let gang = &unit.composed.gang;
        if let Some(plan) = self.world.plan(&gang.namespace, &gang.id) {
            match self.world.is_late(plan) {
                true => unit.course.leave(PlanUndo {
                    reason: conditions::workload::reason::PENDING.into(),
                    message: "It was decided by a leader that had been replaced".into(),
                    started: false,
                    cause: None,
                }),
                false => unit.course.adopt_plan(&plan.facts),
            }
        } else if let Some(held) = &gang.admitted {
            let policy = gang.policy.unwrap_or_else(|| self.world.policy_in(&held.cluster_queue));
            if policy != Policy::Unified {
                let evicted = unit.composed.parts.iter().find_map(|part| self.world.eviction(&part.workload));
                let usage = self.world.usage_shown(&unit.composed.parts);
                unit.course.adopt_status(&gang.id, policy, held, &usage, evicted);
            }
        }
    }

    fn decide(&mut self) {
        let now = self.clock.now_millis();
        let decisions = self.engine.decide(now);
        self.reins.observer.cycle(self.clock.now_millis().saturating_sub(now));
        for decision in decisions {
            tracing::debug!(?decision, "decided");
            self.reins.observer.decided(&decision);
            self.decided(decision);
        }
        let now = self.clock.now();
        for status in self.engine.changed_cluster_queues() {
            self.reins.observer.cluster_queue(&status);
            self.queues.cluster_queue(status, now);
        }
        for (name, share) in self.engine.changed_cohorts() {
            self.queues.cohort(&name, share, now);
        }
        for status in self.engine.changed_local_queues() {
            self.queues.local_queue(status, now);
        }
    }

    fn decided(&mut self, decision: Decision) {
        let gang = match &decision {
            Decision::Admit(admission) | Decision::Place(admission) | Decision::Hold { admission, .. } => {
                admission.gang.clone()
            }
            Decision::Bind { gang, .. } | Decision::Undo { gang, .. } | Decision::Pending { gang, .. } => {
                gang.clone()
            }
            Decision::Settled(gang) | Decision::HoldEnded(gang) => gang.clone(),
        };
        // Of others: they are told about in the words of this one.
        let (preemption, victims) = match &decision {
            Decision::Undo { reason: UndoReason::Preempted(by), .. } => {
                let preemption = self.preemption_by(by);
                self.tell_of_preemption(&gang, by, &preemption.0);
                (Some(preemption), Vec::new())
            }
            Decision::Hold { victims, .. } => (None, self.named_victims(victims)),
            _ => (None, Vec::new()),
        };
        let Some(root) = self.gangs.get(&gang).cloned() else {
            tracing::debug!(%gang, "decided for a gang that is gone");
            return;
        };
        let Some(unit) = self.units.get_mut(&root) else { return };
        let course = &mut unit.course;
        match decision {
            Decision::Admit(admission) => course.admit(admission),
            Decision::Place(admission) => course.replace(admission),
            Decision::Hold { admission, .. } => course.wait_for(admission, victims),
            Decision::HoldEnded(_) => course.leave(PlanUndo {
                reason: conditions::workload::reason::PENDING.into(),
                message: "It is not waited for any more that others leave".into(),
                started: false,
                cause: None,
            }),
            Decision::Bind { pod, node, .. } => {
                course.binds.insert(pod, node);
            }
            Decision::Settled(_) => {
                if let Stage::Admitted { settled, .. } = &mut course.stage {
                    *settled = true;
                }
                if let Some(occurrence) = spoken::settled(&self.world, &unit.composed) {
                    self.voice.say(occurrence, self.clock.now());
                }
            }
            // What an earlier run wrote down says more than that it was interrupted.
            Decision::Undo { .. } if matches!(course.stage, Stage::Leaving { .. }) => {}
            Decision::Undo { reason, started, .. } => {
                let named = &unit.composed.gang;
                // A Workload that somebody else plays the job of has started when it was admitted.
                let jobless = !unit.composed.parts.is_empty()
                    && unit.composed.parts.iter().all(|part| part.job.is_none())
                    && unit.composed.group.is_none();
                let started = started || jobless;
                let cause = self.world.deactivation(&unit.composed.parts);
                let (word, message) = match (&reason, cause) {
                    (UndoReason::Off(Off::Deactivated), Some(words)) => words,
                    (UndoReason::NotReady | UndoReason::RecoveryTimeout(_), _)
                        if started && self.world.is_put_back_too_often(&unit.composed.parts) =>
                    {
                        project::status::deactivation(project::status::PUT_BACK_TOO_OFTEN)
                    }
                    _ => {
                        let (word, text) =
                            project::status::undo_words(&reason, &named.namespace, &named.name);
                        (word.to_owned(), text)
                    }
                };
                let (message, cause) =
                    preemption.map_or((message, None), |(text, cause)| (text, Some(cause)));
                course.leave(PlanUndo { reason: word, message, started, cause });
            }
            Decision::Pending { reason, .. } => {
                let (word, message) = (self.config.dialect.pending_word(&reason), reason.to_string());
                let kind = (word, without_numbers(&message));
                let settles = reason.is_of_missing() || reason.is_passing();
                self.reasons.want(&gang, kind, Told { word, message, reason }, settles, self.clock.now());
                return;
            }
        }
        self.reasons.forget(&gang);
        self.todo.insert(root);
    }

    /// Members of a root went on: its next writes have to be found, unless it has enough to do. Who is
    /// bound, or runs now, changes nothing of what the others wait for.
    fn look_at(&mut self, root: Root) {
        if self.lanes.waiting_in(&lane(&root)) < carry::PODS_ENOUGH {
            self.todo.insert(root);
        }
    }

    /// Hands on the reasons that may be shown now.
    fn tell(&mut self) {
        let now = self.clock.now();
        let engine = &self.engine;
        for (gang, told) in self.reasons.due(now, |gang| engine.is_head(gang)) {
            let Some(root) = self.gangs.get(&gang).cloned() else { continue };
            let Some(unit) = self.units.get_mut(&root) else { continue };
            unit.course.told = Some(told.clone());
            let scene = Scene { world: &self.world, now, epoch: self.config.epoch };
            for occurrence in spoken::waits(scene, &unit.composed, &unit.course, &told) {
                self.voice.say(occurrence, now);
            }
            self.todo.insert(root);
        }
    }

    /// Finds the next writes of everything that changed, until nothing follows any more.
    fn carry(&mut self) {
        let now = self.clock.now();
        for gang in self.orphans.take_changed() {
            self.carry_orphan(gang);
        }
        while let Some(root) = self.todo.pop_first() {
            self.carry_root(&root, now);
        }
        for root in self.rests.take_due(now, !self.lanes.is_idle()) {
            self.carry_and_show(&root, now);
        }
        self.queues.touched(self.world.take_touched_queues(), now);
        let volcano = self.watches.serves(Kind::VolcanoQueue);
        let writes = self.queues.writes(&self.world, volcano, now);
        self.lanes.set(&"queues".into(), writes);
    }

    /// Pods wait for a group that does not exist: that is said from now on.
    fn miss(&mut self, root: Root) {
        let now = self.clock.now();
        if let Some(occurrence) = spoken::misses_its_group(&self.world, &root) {
            self.voice.say(occurrence, now);
        }
        self.todo.insert(root);
    }

    /// A plan without a gang is waited for until it is gone.
    fn carry_orphan(&mut self, gang: GangId) {
        let Some(plan) = self.world.plan_of(&gang) else {
            self.orphans.forget(&gang);
            self.lanes.set(&lane(&Root::Plan(gang)), Vec::new());
            return;
        };
        let writes = carry::orphan::next(&self.world, plan);
        self.orphans.wait(&gang, &plan.facts.plan.owners);
        self.lanes.set(&lane(&Root::Plan(gang)), writes);
    }

    /// Finds the next writes of a root. How it does rests for a while before it is shown, but for its end:
    /// what remembers that goes with its plan.
    fn carry_root(&mut self, root: &Root, now: Timestamp) {
        if self.world.has_just_ended(root) {
            return self.carry_and_show(root, now);
        }
        let writes = self.writes_of(root, now);
        self.rests.begin(root, now);
        self.lanes.set(&lane(root), writes);
        self.count_workloads(root, now);
    }

    /// Finds the next writes of a root, and shows how it does.
    fn carry_and_show(&mut self, root: &Root, now: Timestamp) {
        let mut writes = self.writes_of(root, now);
        // What is only shown comes last, and not while there is more to do than fits in at once.
        if writes.len() < carry::PODS_AT_ONCE {
            writes.extend(self.shown_group(root, now));
        }
        self.lanes.set(&lane(root), writes);
        self.count_workloads(root, now);
    }

    /// The writes that a root wants now.
    fn writes_of(&mut self, root: &Root, now: Timestamp) -> Vec<Write> {
        let mut writes = self.job_writes(root, now);
        self.drop_what_is_in_vain(root, &mut writes);
        while let Some(unit) = self.units.get_mut(root) {
            let scene = Scene { world: &self.world, now, epoch: self.config.epoch };
            unit.course.paid = self.engine.paid(&unit.composed.gang.id).unwrap_or_default().to_vec();
            let next = carry::next(scene, &unit.composed, &unit.course);
            unit.course.pins = next.pins;
            // A request without an answer may still take effect: nothing is undone before that is known.
            let owed = next.reached == Some(Reached::Undone) && self.lanes.is_owed_an_answer(&lane(root));
            let Some(reached) = next.reached.filter(|_| !owed) else {
                writes.extend(next.writes);
                break;
            };
            self.reached(root, reached, now);
        }
        // One request about a pod at a time; what more it wants is asked when that was answered.
        writes.retain(|write| write.target.kind != Kind::Pod || !self.lanes.is_busy(&write.target));
        writes
    }

    /// Workloads that cannot be made as things are, are not asked for again.
    fn drop_what_is_in_vain(&mut self, root: &Root, writes: &mut Vec<Write>) {
        let is_making = |write: &Write| write.call.makes_workload_of().is_some();
        if !writes.iter().any(is_making) {
            return self.unmade.forget(root);
        }
        let (world, lanes, unmade) = (&self.world, &self.lanes, &mut self.unmade);
        writes.retain(|write| {
            let Some(made_of) = unmade::made_of(world, &write.call) else { return true };
            if unmade.is_in_vain(root, &made_of) {
                return false;
            }
            if !lanes.is_busy(&write.target) {
                unmade.ask(root, made_of);
            }
            true
        });
    }

    /// How many Workloads a gang of several adds to the counters of its queues.
    fn count_workloads(&mut self, root: &Root, now: Timestamp) {
        let Some(unit) = self.units.get(root) else { return };
        let gang = &unit.composed.gang;
        let more = u32::try_from(unit.composed.parts.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let counts = match &unit.course.stage {
            Stage::Waiting | Stage::Holding { .. } | Stage::Leaving { undone: true, .. } => [more, 0, 0],
            Stage::Admitted { committed: false, .. } => [0, more, 0],
            Stage::Admitted { .. } | Stage::Leaving { .. } => [0, more, more],
        };
        let local_queue = gang.local_queue.clone().map(|queue| (gang.namespace.clone(), queue));
        let door = local_queue.as_ref().and_then(|place| self.world.local_queues.get(place));
        let own = match &unit.course.stage {
            Stage::Admitted { admission, .. } => admission.cluster_queue.clone(),
            _ => None,
        };
        let cluster_queue = own.or_else(|| door.map(|door| door.facts.queue.cluster_queue.clone()));
        let larger = Larger { cluster_queue, local_queue, counts };
        self.queues.larger(&gang.id, (more > 0).then_some(larger), now);
    }

    /// A step stands: the engine is told, and the next one may follow.
    fn reached(&mut self, root: &Root, reached: Reached, at: Timestamp) {
        let Some(unit) = self.units.get_mut(root) else { return };
        let gang = unit.composed.gang.id.clone();
        let now = at.as_millisecond();
        let scene = Scene { world: &self.world, now: at, epoch: self.config.epoch };
        for occurrence in spoken::reached(scene, &unit.composed, &unit.course, reached) {
            self.voice.say(occurrence, at);
        }
        match (reached, &mut unit.course.stage) {
            (Reached::Committed, Stage::Admitted { committed, .. }) => {
                *committed = true;
                self.engine.confirm(Outcome::Committed(gang), now);
                self.confirmed = true;
            }
            (Reached::Committed, Stage::Holding { written, .. }) => {
                *written = true;
                self.engine.confirm(Outcome::Committed(gang), now);
                self.confirmed = true;
            }
            (Reached::Undone, Stage::Leaving { undone, .. }) => {
                *undone = true;
                self.engine.confirm(Outcome::Undone(gang), now);
                self.confirmed = true;
            }
            (Reached::Relapsed, Stage::Leaving { undone, .. }) => *undone = false,
            (Reached::Clean, stage) => *stage = Stage::Waiting,
            _ => {}
        }
    }
}
