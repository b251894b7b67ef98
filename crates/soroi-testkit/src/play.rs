//! How is a story played? Steps one after another, looks until they show what must be seen, rules
//! at every change, and at the end nothing may be left.
//!
//! Knows stories, stages and rules; it never knows what kind of cluster the stage is.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use serde_json::{Value, json};
use soroi_clock::{Clock, Sleep};
use soroi_watch::Query;
use tokio::task::JoinSet;

use crate::api::{ApiError, Hands};
use crate::kind::{self, KINDS};
use crate::rule::{self, Limits};
use crate::scenario::{Action, GangRef, Look, Pods, Ref, Scenario, Step};
use crate::simulate::fits::{pauses, pausing, waits_in_vain};
use crate::stage::{Pace, Stage};
use crate::wire::{STORM_RESTART_MAX, Trouble};
use crate::world::{Nap, State, World, has_ended};
use crate::{diff, look};

/// How often a look is repeated until it shows what must be seen.
const TICK: Duration = Duration::from_millis(100);
/// How long what was seen must stay.
const HOLD: Duration = Duration::from_millis(1_500);
/// How long the cluster may take to come to rest at the end, beyond the story's own patience.
const REST: Duration = Duration::from_secs(30);
/// The same after a storm: nodes that were silent, back-offs at their longest, pods of nodes that are
/// gone.
const CALM: Duration = Duration::from_secs(600);
/// How long a step waits for a new namespace or node to take pods.
const USABLE_MAX: Duration = Duration::from_secs(10);

/// How a run differs from the plain one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// What happens on the way between the product and the API server.
    pub trouble: Trouble,
    /// Whether what is seen is collected rather than insisted on.
    pub update: bool,
}

impl Mode {
    /// The plain run.
    pub const PLAIN: Self = Self { trouble: Trouble::None, update: false };
}

/// What a run gave.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Writes that the product sent.
    pub writes: u64,
    /// The product's last requests, oldest first: equal runs have equal ones.
    pub requests: Vec<String>,
    /// Changes of single objects, after each of which the rules were asked.
    pub changes: u64,
    /// How often the stage made trouble.
    pub faults: u32,
    /// Requests that the API server was asked, by everybody; where that is not known, none.
    pub api_requests: u64,
    /// In an update run: what was seen in place of what was expected, by the step's line.
    pub seen: BTreeMap<usize, Vec<String>>,
}

/// Why a run failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Line of the step, if it was at one.
    pub line: Option<usize>,
    /// What went wrong.
    pub what: String,
    /// What happened before, oldest first.
    pub trace: Vec<String>,
    /// The product's last requests, oldest first.
    pub requests: Vec<String>,
}

/// Lines of trace and requests that a failure shows; all with `{:#}`.
const SHOWN_MAX: usize = 45;

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.what.trim_end())?;
        for (title, lines) in [("what happened", &self.trace), ("the product's requests", &self.requests)] {
            writeln!(f, "{title}:")?;
            let shown = if f.alternate() { lines.len() } else { SHOWN_MAX };
            for line in lines.iter().skip(lines.len().saturating_sub(shown)) {
                writeln!(f, "    {line}")?;
            }
        }
        Ok(())
    }
}

/// Plays `scenario` on `stage`.
///
/// # Errors
/// The first thing that was not as it must be.
pub async fn play(
    scenario: &Scenario,
    stage: &mut dyn Stage,
    limits: Limits,
    mode: Mode,
) -> Result<Outcome, Box<Failure>> {
    let clock = stage.clock();
    let world = Arc::new(Mutex::new(World::new(clock.now())));
    let mut watches = JoinSet::new();
    let election = (scenario.settings.replicas > 1).then_some(&kind::LEASE);
    for kind in KINDS.iter().chain(election) {
        watches.spawn(follow(world.clone(), stage.client(), clock.clone(), *kind, limits));
    }
    let (seen, at) = (world.clone(), clock.clone());
    stage.look_on(Arc::new(move |sight| {
        rule::on_sight(&mut lock(&seen), sight, at.now(), &limits);
    }));
    let hands = Hands::new(stage.client());
    let pace = stage.pace();
    let mut player = Player {
        scenario,
        stage,
        pace,
        limits,
        mode,
        clock,
        world,
        hands,
        owed: Duration::ZERO,
        outcome: Outcome::default(),
    };
    let played = player.story().await;
    player.outcome.writes = player.stage.writes();
    player.outcome.requests = player.stage.log();
    player.outcome.faults = player.stage.faults();
    player.outcome.api_requests = player.stage.api_requests();
    player.outcome.changes = lock(&player.world).changes();
    match played {
        Ok(()) => Ok(player.outcome),
        Err((line, what)) => Err(Box::new(player.failure(line, what))),
    }
}

/// Keeps the world up to date for one kind, and checks every change.
async fn follow(
    world: Arc<Mutex<World>>,
    client: kube::Client,
    clock: Clock,
    kind: kind::Kind,
    limits: Limits,
) {
    let mut changes = soroi_watch::watch::<Value>(client, clock.clone(), Query::path(kind.path(None)), 0);
    while let Some(change) = changes.next().await {
        let now = clock.now();
        let mut world = lock(&world);
        let changed = world.change(kind, change, now);
        rule::on_change(&mut world, &changed, now, &limits);
    }
}

fn lock(world: &Mutex<World>) -> MutexGuard<'_, World> {
    // A panic in a watch must not hide what the world has seen.
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A step's line, and what was wrong there.
type Wrong = (Option<usize>, String);

struct Player<'a> {
    scenario: &'a Scenario,
    stage: &'a mut dyn Stage,
    pace: Pace,
    limits: Limits,
    mode: Mode,
    clock: Clock,
    world: Arc<Mutex<World>>,
    hands: Hands,
    /// What was cut off the waits since the last look: the next one may take so much longer.
    owed: Duration,
    outcome: Outcome,
}

impl Player<'_> {
    async fn story(&mut self) -> Result<(), Wrong> {
        let steps: Vec<&Step> = {
            let plain = self.mode.trouble == Trouble::None;
            let applies = |step: &&Step| step.applies_to(self.limits.placement, plain);
            self.scenario.steps.iter().filter(applies).collect()
        };
        // Looks that follow each other are one look at the same moment.
        for group in steps.chunk_by(|a, b| is_look(a) && is_look(b)) {
            let line = group.first().map(|step| step.line);
            let done = if group.iter().copied().all(is_look) {
                self.looks(group).await
            } else {
                self.act(group).await
            };
            done.map_err(|what| (line, what))?;
        }
        if self.in_storm() {
            self.after_the_storm().await.map_err(|what| (None, what))?;
        } else {
            self.rest().await.map_err(|what| (None, what))?;
        }
        self.sweep().await.map_err(|what| (None, what))
    }

    async fn act(&mut self, group: &[&Step]) -> Result<(), String> {
        for step in group {
            let note = format!("$ {}", step.text);
            lock(&self.world).note(self.clock.now(), &note);
            if !matches!(step.action, Action::Wait(_)) {
                lock(&self.world).last_deed = Some(self.clock.now());
            }
            if let Action::Lull { begins } = step.action {
                self.lull(begins).await?;
            }
            let result = self.perform(&step.action).await;
            let seen: Vec<String> = match &result {
                Ok(()) => Vec::new(),
                Err(error) => format!("error: {error}").lines().map(str::to_owned).collect(),
            };
            if self.in_storm() {
                seen.iter().for_each(|line| lock(&self.world).note(self.clock.now(), line));
                if let Err(error) = &result
                    && error.is_of_the_request()
                {
                    return Err(format!("a step that no cluster accepts: $ {}\n{error}", step.text));
                }
            } else if !look::matches(&step.expected, &seen) {
                if self.mode.update {
                    self.outcome.seen.insert(step.line, seen);
                } else {
                    return Err(format!("$ {}\n{}", step.text, diff::lines(&step.expected, &seen)));
                }
            }
            self.check()?;
        }
        Ok(())
    }

    async fn perform(&mut self, action: &Action) -> Result<(), ApiError> {
        match action {
            Action::Apply(manifests) => {
                for manifest in manifests {
                    self.hands.apply(&self.pace.manifest(manifest)).await?;
                }
                for manifest in manifests {
                    self.usable(manifest).await?;
                }
            }
            Action::Delete(targets) => {
                for target in targets {
                    self.hands.delete(target).await?;
                }
            }
            Action::Orphan(targets) => {
                for target in targets {
                    self.hands.orphan(target).await?;
                }
            }
            Action::DeletePods(pods) => {
                for pod in self.chosen(pods) {
                    self.hands.delete(&pod).await?;
                }
            }
            Action::Evict(pods) => {
                for pod in self.chosen(pods) {
                    self.hands.evict(&pod).await?;
                }
            }
            Action::Release(pods) => {
                for pod in self.chosen_in(pods, true) {
                    self.hands.patch(&pod, None, &json!({"metadata": {"finalizers": null}})).await?;
                }
            }
            Action::Patch { target, subresource, patch } => {
                self.hands.patch(target, subresource.as_deref(), patch).await?;
            }
            Action::PatchWorkload { gang, subresource, patch } => {
                let names: Vec<String> = {
                    let world = lock(&self.world);
                    let workloads = world.gang(gang).workloads;
                    workloads
                        .iter()
                        .filter_map(|found| found["metadata"]["name"].as_str().map(str::to_owned))
                        .collect()
                };
                for name in names {
                    let target = Ref { kind: kind::WORKLOAD, namespace: gang.namespace.clone(), name };
                    self.hands.patch(&target, subresource.as_deref(), patch).await?;
                }
            }
            Action::Taint { node, key, value, effect } => {
                self.taint(node, key, value, effect.as_deref()).await?;
            }
            Action::Phase { pods, phase } => {
                for pod in self.chosen(pods) {
                    let patch = json!({"status": {"phase": phase}});
                    self.hands.patch(&pod, Some("status"), &patch).await?;
                }
            }
            Action::Wait(span) => self.wait(*span).await,
            Action::Product { runs } => self.product(*runs),
            Action::Sleep { span, suspended } => self.sleep(*span, *suspended),
            Action::Refuse { one_in } => self.stage.refuse_pods(*one_in),
            Action::Lull { .. } => {}
            Action::Forbid(condition) => lock(&self.world).forbidden.push(condition.clone()),
            Action::Allow(condition) => {
                lock(&self.world).forbidden.retain(|known| known.text != condition.text)
            }
            Action::Inject(injection) => self.stage.inject(injection),
            Action::Get(_) => {}
        }
        Ok(())
    }

    /// The pods that a step means, as the world knows them now.
    fn chosen(&self, pods: &Pods) -> Vec<Ref> {
        self.chosen_in(pods, false)
    }

    /// The same; of a gang those that are being deleted, or those that are not.
    fn chosen_in(&self, pods: &Pods, terminating: bool) -> Vec<Ref> {
        let named = |namespace: &str, name: &str| Ref {
            kind: kind::POD,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        match pods {
            Pods::Named(names) => names.iter().map(|(namespace, name)| named(namespace, name)).collect(),
            Pods::Of { gang, node, index, all } => {
                let world = lock(&self.world);
                let view = world.gang(gang);
                let meant = |pod: &&&Value| {
                    let on = node.as_ref().is_none_or(|node| pod["spec"]["nodeName"] == node.as_str());
                    let found = &pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"];
                    let at = index.is_none_or(|index| *found == index.to_string().as_str());
                    on && at
                        && !has_ended(pod)
                        && pod["metadata"]["deletionTimestamp"].is_null() != terminating
                };
                let most = if *all { usize::MAX } else { 1 };
                let chosen = view.pods.iter().filter(meant).take(most);
                chosen
                    .map(|pod| named(&gang.namespace, pod["metadata"]["name"].as_str().unwrap_or_default()))
                    .collect()
            }
        }
    }

    fn product(&mut self, runs: bool) {
        match runs {
            true => self.stage.start_product(),
            false => self.stage.stop_product(),
        }
        lock(&self.world).product(runs, self.clock.now());
    }

    async fn taint(&self, node: &str, key: &str, value: &str, effect: Option<&str>) -> Result<(), ApiError> {
        let target = Ref { kind: kind::NODE, namespace: String::new(), name: node.to_owned() };
        let now = self.hands.get(&target).await?;
        let mut taints = now["spec"]["taints"].as_array().cloned().unwrap_or_default();
        taints.retain(|taint| taint["key"] != key || effect.is_some_and(|effect| taint["effect"] != effect));
        if let Some(effect) = effect {
            taints.push(json!({"key": key, "value": value, "effect": effect}));
        }
        self.hands.patch(&target, None, &json!({"spec": {"taints": taints}})).await
    }

    /// Waits until a new namespace and a new node take pods: controllers and a kubelet see to that.
    async fn usable(&self, manifest: &Value) -> Result<(), ApiError> {
        let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
        let until = self.clock.now() + USABLE_MAX;
        loop {
            let usable = match manifest["kind"].as_str() {
                Some("Namespace") => self.hands.has_account(name).await?,
                Some("Node") => self.hands.takes_pods(name).await?,
                _ => true,
            };
            if usable || self.clock.now() >= until {
                return Ok(());
            }
            self.clock.sleep(TICK).await;
        }
    }

    /// What it sends when it wakes is late.
    fn sleep(&mut self, told: Duration, suspended: bool) {
        let span = self.pace.wait(told);
        let how = if suspended { Sleep::TimersStand } else { Sleep::TimersRun };
        self.stage.sleep_product(span, how);
        lock(&self.world).naps.push(Nap { until: self.clock.now() + span });
    }

    async fn wait(&mut self, told: Duration) {
        let span = self.pace.wait(told);
        self.owed += told.saturating_sub(span);
        let until = self.clock.now() + span;
        while self.clock.now() < until {
            let left = Duration::try_from(until.duration_since(self.clock.now())).unwrap_or(Duration::ZERO);
            self.clock.sleep(left.min(Duration::from_secs(1))).await;
            rule::over_time(&mut lock(&self.world), self.clock.now(), &self.limits);
        }
    }

    /// Repeats the looks until all show what must be seen, and stay so.
    async fn looks(&mut self, group: &[&Step]) -> Result<(), String> {
        let most = self.scenario.settings.within + self.limits.patience + self.pace.patience;
        let until = self.clock.now() + most + std::mem::take(&mut self.owed);
        let mut held_since = None;
        loop {
            self.clock.sleep(TICK).await;
            rule::over_time(&mut lock(&self.world), self.clock.now(), &self.limits);
            self.check()?;
            let wrong = self.wrong_looks(group)?;
            let now = self.clock.now();
            if wrong.is_empty() {
                let since = *held_since.get_or_insert(now);
                if now >= since + HOLD {
                    return Ok(());
                }
                continue;
            }
            if now >= until {
                return self.give_up(wrong, held_since.is_some());
            }
            held_since = None;
        }
    }

    /// The looks that do not show what they must, with what they show.
    fn wrong_looks<'s>(&self, group: &[&'s Step]) -> Result<Vec<(&'s Step, Vec<String>)>, String> {
        let world = lock(&self.world);
        let mut wrong = Vec::new();
        for step in group {
            let Action::Get(look) = &step.action else { continue };
            let seen = draw(&world, look, step)?;
            if !look::matches(&step.expected, &seen) {
                wrong.push((*step, seen));
            }
        }
        Ok(wrong)
    }

    fn give_up(&mut self, wrong: Vec<(&Step, Vec<String>)>, was_right: bool) -> Result<(), String> {
        if self.mode.update {
            self.outcome.seen.extend(wrong.into_iter().map(|(step, seen)| (step.line, seen)));
            return Ok(());
        }
        let mut text = String::new();
        if was_right {
            text.push_str("it was as it must be, but did not stay so\n");
        }
        for (step, seen) in wrong {
            text.push_str(&format!(
                "line {}: $ {}\n{}",
                step.line,
                step.text,
                diff::lines(&step.expected, &seen)
            ));
        }
        Err(text)
    }

    fn check(&mut self) -> Result<(), String> {
        if let Some(how) = self.stage.product_died() {
            return Err(format!("the product ended by itself: {how}"));
        }
        match lock(&self.world).violations.first() {
            Some(violation) => Err(violation.clone()),
            None => Ok(()),
        }
    }

    /// Waits until nothing is under way and every invariant holds.
    async fn rest(&mut self) -> Result<(), String> {
        let limits = self.limits;
        self.until(REST + limits.patience + self.pace.patience, |world| rule::at_rest(world, &limits)).await
    }

    fn heal(&mut self) {
        self.stage.heal();
        lock(&self.world).wake(self.clock.now());
    }

    fn in_storm(&self) -> bool {
        matches!(self.mode.trouble, Trouble::Storm(_))
    }

    /// Holds the storm back, until all that fits runs; from then on whatever makes room must be noticed at
    /// once. Or lets it go on.
    async fn lull(&mut self, begins: bool) -> Result<(), String> {
        if !self.in_storm() {
            return Ok(());
        }
        lock(&self.world).lull(false);
        self.stage.set_lull(begins);
        if begins {
            self.product(true);
            self.stage.wake();
            lock(&self.world).wake(self.clock.now());
            let (limits, clock) = (self.limits, self.clock.clone());
            let settled = move |world: &World| match world.is_seen_to(clock.now()) {
                true => waits_in_vain(world, &limits, clock.now()),
                false => vec!["nobody sees to anything".to_owned()],
            };
            self.until(CALM, settled).await?;
            lock(&self.world).lull(true);
        }
        Ok(())
    }

    /// Waits until everything that fits runs and the rest is at rest; then a fresh start must find
    /// nothing to do.
    async fn after_the_storm(&mut self) -> Result<(), String> {
        lock(&self.world).note(self.clock.now(), "$ (the storm is over)");
        lock(&self.world).lull(false);
        self.heal();
        self.product(true);
        // Its last crash may have been a moment ago.
        self.wait(STORM_RESTART_MAX).await;
        let limits = self.limits;
        let clock = self.clock.clone();
        let settled = |world: &World| {
            let mut wrong = rule::at_rest(world, &limits);
            wrong.extend(waits_in_vain(world, &limits, clock.now()));
            wrong
        };
        self.until(CALM, &settled).await?;
        let mut before = standing(&lock(&self.world));
        // Who was put back for a while may start because that is over.
        before.retain(|gang, _| !pauses(&lock(&self.world), gang, self.clock.now(), &limits));
        let running = occupants(&lock(&self.world));
        lock(&self.world).note(self.clock.now(), "$ (a fresh start)");
        self.product(false);
        self.product(true);
        self.until(CALM, &settled).await?;
        let after = standing(&lock(&self.world));
        let ended = |(gang, was): (&GangRef, &State)| {
            *was != State::Finished && after.get(gang).is_none_or(|now| *now == State::Finished)
        };
        if before.iter().any(ended) || !running.is_subset(&occupants(&lock(&self.world))) {
            // Something ended meanwhile: its place is new, whoever finds it.
            return Ok(());
        }
        if limits.one_gets_ready {
            // Whoever got ready meanwhile made way for the next.
            return Ok(());
        }
        let done = |(gang, state): (&GangRef, &State)| {
            let was = before.get(gang)?;
            let started = *was == State::Pending && *state == State::Admitted;
            started.then(|| format!("gang {} waited until a fresh start found its places", gang.name))
        };
        let found: Vec<String> = after.iter().filter_map(done).collect();
        if found.is_empty() { Ok(()) } else { Err(found.join("\n")) }
    }

    /// Deletes every Job, PodGroup and pod of the story, and waits until nothing is left of them.
    async fn sweep(&mut self) -> Result<(), String> {
        lock(&self.world).note(self.clock.now(), "$ (the story is over: everything is deleted)");
        lock(&self.world).forbidden.clear();
        self.heal();
        self.product(true);
        for kind in [kind::JOB, kind::POD_GROUP, kind::POD] {
            let targets: Vec<Ref> =
                lock(&self.world).all(kind).map(|object| reference(kind, object)).collect();
            for target in targets {
                self.hands
                    .delete(&target)
                    .await
                    .map_err(|error| format!("cannot delete {target}: {error}"))?;
            }
        }
        self.release_all().await?;
        self.until(self.pace.sweep + self.limits.patience, rule::leftovers).await
    }

    /// Takes the story's own finalizers away, wherever they still are.
    async fn release_all(&self) -> Result<(), String> {
        // What was just deleted must be known as such first.
        self.clock.sleep(TICK).await;
        let held: Vec<Ref> = {
            let world = lock(&self.world);
            world
                .all(kind::POD)
                .filter(|pod| rule::held_by_story(pod))
                .map(|pod| reference(kind::POD, pod))
                .collect()
        };
        for target in held {
            let patch = json!({"metadata": {"finalizers": null}});
            self.hands
                .patch(&target, None, &patch)
                .await
                .map_err(|error| format!("cannot release {target}: {error}"))?;
        }
        Ok(())
    }

    /// Waits until `wrong` finds nothing, twice with a pause between.
    async fn until(&mut self, most: Duration, wrong: impl Fn(&World) -> Vec<String>) -> Result<(), String> {
        let until = self.clock.now() + most;
        let mut right = 0;
        let (mut asked, mut found) = (None, Vec::new());
        loop {
            self.clock.sleep(HOLD).await;
            rule::over_time(&mut lock(&self.world), self.clock.now(), &self.limits);
            self.check()?;
            let world = lock(&self.world);
            // As long as nothing has changed the answer is the same.
            let now = self.clock.now();
            let state = Some((world.turns(), world.is_seen_to(now), pausing(&world, now, &self.limits)));
            if asked != state {
                (asked, found) = (state, wrong(&world));
            }
            drop(world);
            right = if found.is_empty() { right + 1 } else { 0 };
            if right == 2 {
                return Ok(());
            }
            if self.clock.now() >= until {
                return Err(found.join("\n"));
            }
        }
    }

    fn failure(&self, line: Option<usize>, what: String) -> Failure {
        let trace = lock(&self.world).trace().map(str::to_owned).collect();
        Failure { line, what, trace, requests: self.stage.log() }
    }
}

fn reference(kind: kind::Kind, object: &Value) -> Ref {
    let field = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
    Ref { kind, namespace: field("namespace"), name: field("name") }
}

/// How far every gang is.
fn standing(world: &World) -> BTreeMap<GangRef, State> {
    world.gangs().iter().map(|view| (view.gang.clone(), view.state())).collect()
}

/// The pods that hold a place.
fn occupants(world: &World) -> BTreeSet<String> {
    let holding = world.all(kind::POD).filter(|pod| pod["spec"]["nodeName"].is_string() && !has_ended(pod));
    holding.filter_map(|pod| pod["metadata"]["uid"].as_str().map(str::to_owned)).collect()
}

fn is_look(step: &Step) -> bool {
    matches!(step.action, Action::Get(_))
}

fn draw(world: &World, look: &Look, step: &Step) -> Result<Vec<String>, String> {
    let header = step.expected.first().map_or("", String::as_str);
    look::draw(world, look, header)
}
