//! Plays a situation on an embedded cluster under simulated time.
//!
//! Beside the steps it plays the *owner* of the Workloads: nobody else clears the reservation of an
//! evicted Workload without a job, which a job controller does when the job's pods are gone.

use std::collections::BTreeMap;

use futures::StreamExt;
use futures::stream::{BoxStream, select_all};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use soroi_clock::Clock;
use soroi_control::config::Config;
use soroi_embedded::{Embedded, Options};
use soroi_engine::decision::Settings;
use soroi_engine::event::Policy;
use soroi_engine::preempt::FairRule;
use soroi_watch::{Change, Query, watch};
use tokio::task::JoinSet;

use super::picture::{self, Names};
use super::situation::{Act, Asked, Situation};
use crate::api::{ApiError, Hands};
use crate::kind::{self, Kind};
use crate::scenario::Ref;
use crate::world::{condition, is_true};

/// Every run's clock starts here.
const STARTED: Timestamp = Timestamp::constant(1_767_225_600, 0);
const NAMESPACE: &str = "oracle";
/// Time stamps have seconds: two creations are further apart than one.
const CREATE_EVERY: SignedDuration = SignedDuration::from_millis(1_250);
/// How long nothing must have changed for a step to be over, and for the next Workload of a step.
const QUIET: SignedDuration = SignedDuration::from_millis(2_500);
const QUIET_BETWEEN: SignedDuration = SignedDuration::from_millis(1_400);
/// How long the owner takes to finish an eviction.
const OWNER_TAKES: SignedDuration = SignedDuration::from_millis(400);
/// A step that has not come to rest by then never will.
const RESTLESS_AFTER: SignedDuration = SignedDuration::from_secs(30);
/// How often a write is tried that somebody else's got in the way of.
const TRIES_MAX: u32 = 20;

/// Plays all steps. Returns the picture after each; fewer than there are steps if one never came to
/// rest.
///
/// # Errors
/// What the API refused, or a runtime that cannot be made.
pub fn play(situation: &Situation) -> Result<Vec<Value>, String> {
    let runtime = soroi_clock::simulated_runtime().map_err(|error| format!("no runtime: {error}"))?;
    runtime.block_on(async {
        let clock = Clock::simulated(STARTED);
        let embedded = Embedded::new(clock.clone(), Options::default());
        let client = embedded.client();
        let fair = [FairRule::LessThanOrEqualToFinalShare, FairRule::LessThanInitialShare];
        let fair_sharing = situation.fair_sharing.then(|| fair.to_vec());
        let settings = Settings { placement: Policy::QuotaOnly, fair_sharing, ..Settings::default() };
        let config = Config { settings, ..Config::default() };
        let mut parts = JoinSet::new();
        parts.spawn(embedded.run_cluster());
        let (product, its_clock) = (client.clone(), clock.clone());
        parts.spawn(async move { _ = soroi_control::run(product, its_clock, config).await });
        let mut player = Player::new(situation, clock, client);
        tokio::select! {
            biased;
            pictures = player.play() => pictures.map_err(|error| error.to_string()),
            _ = parts.join_next() => Err("the product or the cluster has ended".to_owned()),
        }
    })
}

struct Player<'a> {
    situation: &'a Situation,
    clock: Clock,
    hands: Hands,
    changes: BoxStream<'static, (Kind, Change<Value>)>,
    /// Workloads, ClusterQueues and Cohorts by name.
    objects: BTreeMap<(&'static str, String), Value>,
    names: Names,
    changed_at: Timestamp,
    created_at: Timestamp,
    /// Evictions that the owner has to finish, and when.
    due: BTreeMap<String, Timestamp>,
    evictions: Vec<Value>,
}

/// A step never comes to rest.
struct Restless;

impl<'a> Player<'a> {
    fn new(situation: &'a Situation, clock: Clock, client: kube::Client) -> Self {
        let follow = |kind: Kind| {
            let query = Query::path(kind.path(None));
            let changes = watch::<Value>(client.clone(), clock.clone(), query, 0);
            changes.map(move |change| (kind, change)).boxed()
        };
        let changes = select_all([kind::WORKLOAD, kind::CLUSTER_QUEUE, kind::COHORT].map(follow)).boxed();
        Self {
            situation,
            hands: Hands::new(client),
            changes,
            objects: BTreeMap::new(),
            names: Names::new(),
            changed_at: clock.now(),
            created_at: Timestamp::MIN,
            due: BTreeMap::new(),
            evictions: Vec::new(),
            clock,
        }
    }

    async fn play(&mut self) -> Result<Vec<Value>, ApiError> {
        self.set_up().await?;
        let mut pictures = Vec::new();
        for step in &self.situation.steps {
            self.evictions.clear();
            self.act(&step.act).await?;
            match self.settle(QUIET).await? {
                Ok(()) => pictures.push(self.picture()),
                Err(Restless) => break,
            }
        }
        Ok(pictures)
    }

    async fn set_up(&mut self) -> Result<(), ApiError> {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
        self.hands.apply(&namespace).await?;
        let situation = self.situation;
        for (kind, specs) in [
            (kind::FLAVOR, &situation.flavors),
            (kind::COHORT, &situation.cohorts),
            (kind::CLUSTER_QUEUE, &situation.cluster_queues),
            (kind::LOCAL_QUEUE, &situation.local_queues),
        ] {
            for (name, spec) in specs {
                let mut spec = spec.clone();
                if kind == kind::CLUSTER_QUEUE && spec["namespaceSelector"].is_null() {
                    spec["namespaceSelector"] = json!({});
                }
                self.hands.apply(&manifest(kind, name, spec)).await?;
            }
        }
        _ = self.settle(QUIET).await?;
        Ok(())
    }

    async fn act(&mut self, act: &Act) -> Result<(), ApiError> {
        match act {
            Act::Create { workloads } => self.create(workloads).await,
            Act::Finish { workload } => {
                let finished = |object: &Value, now| {
                    let conditions = with_condition(
                        object,
                        "Finished",
                        "True",
                        "Succeeded",
                        "Job finished successfully",
                        now,
                    );
                    Some(json!({ "conditions": conditions }))
                };
                self.patch_status(workload, finished).await
            }
            Act::Delete { workload } => self.hands.delete(&workload_named(workload)).await,
            Act::Deactivate { workload } => {
                self.patch(workload_named(workload), json!({ "active": false })).await
            }
            Act::Activate { workload } => {
                self.patch(workload_named(workload), json!({ "active": true })).await
            }
            Act::Reclaim { workload, pods } => {
                let pods = pods.iter().map(|(name, count)| json!({ "name": name, "count": count }));
                let pods: Vec<Value> = pods.collect();
                self.patch_status(workload, |_, _| Some(json!({ "reclaimablePods": pods }))).await
            }
            Act::SetPriority { workload, priority } => {
                self.patch(workload_named(workload), json!({ "priority": priority })).await
            }
            Act::SetQuota { cluster_queue, cohort, flavor, resource, set } => {
                let queue = cluster_queue.as_ref().map(|name| (kind::CLUSTER_QUEUE, name));
                let Some((kind, name)) = queue.or(cohort.as_ref().map(|name| (kind::COHORT, name))) else {
                    return Ok(());
                };
                let target = named(kind, "", name);
                let mut groups = self.hands.get(&target).await?["spec"]["resourceGroups"].take();
                set_quota(&mut groups, flavor, resource, set);
                self.patch(target, json!({ "resourceGroups": groups })).await
            }
            Act::SetStop { cluster_queue, local_queue, stop_policy } => {
                let queue = cluster_queue.as_ref().map(|name| named(kind::CLUSTER_QUEUE, "", name));
                let door = local_queue.as_ref().map(|name| named(kind::LOCAL_QUEUE, NAMESPACE, name));
                let Some(target) = queue.or(door) else { return Ok(()) };
                self.patch(target, json!({ "stopPolicy": stop_policy })).await
            }
            Act::PatchQueue { cluster_queue, spec } => {
                self.patch(named(kind::CLUSTER_QUEUE, "", cluster_queue), spec.clone()).await
            }
        }
    }

    async fn create(&mut self, workloads: &[Asked]) -> Result<(), ApiError> {
        for (at, asked) in workloads.iter().enumerate() {
            if at > 0 {
                _ = self.settle(QUIET_BETWEEN).await?;
            }
            let wait = self.created_at.saturating_add(CREATE_EVERY).unwrap_or(Timestamp::MIN);
            self.clock.sleep_until(wait).await;
            self.hands.apply(&manifest(kind::WORKLOAD, &asked.name, asked.spec())).await?;
            self.created_at = self.clock.now();
        }
        Ok(())
    }

    async fn patch(&self, target: Ref, spec: Value) -> Result<(), ApiError> {
        self.hands.patch(&target, None, &json!({ "spec": spec })).await
    }

    /// Reads a Workload and writes what `change` makes of its status; again if somebody else wrote.
    async fn patch_status(
        &self,
        name: &str,
        change: impl Fn(&Value, Timestamp) -> Option<Value>,
    ) -> Result<(), ApiError> {
        let target = workload_named(name);
        for _ in 0..TRIES_MAX {
            let object = match self.hands.get(&target).await {
                Err(ApiError::Refused { code: 404, .. }) => return Ok(()),
                object => object?,
            };
            let Some(status) = change(&object, self.clock.now()) else { return Ok(()) };
            let version = &object["metadata"]["resourceVersion"];
            let patch = json!({ "metadata": { "resourceVersion": version }, "status": status });
            match self.hands.patch(&target, Some("status"), &patch).await {
                Err(ApiError::Refused { code: 409, .. }) => {}
                done => return done,
            }
        }
        Ok(())
    }

    /// Waits until nothing has changed for so long, doing the owner's duties meanwhile.
    async fn settle(&mut self, quiet: SignedDuration) -> Result<Result<(), Restless>, ApiError> {
        let started = self.clock.now();
        loop {
            self.finish_evictions().await?;
            let now = self.clock.now();
            let rest = self.changed_at.max(started).saturating_add(quiet).unwrap_or(Timestamp::MAX);
            let next = self.due.values().min().copied();
            if next.is_none() && now >= rest {
                return Ok(Ok(()));
            }
            if now.duration_since(started) > RESTLESS_AFTER {
                return Ok(Err(Restless));
            }
            tokio::select! {
                biased;
                change = self.changes.next() => {
                    if let Some((kind, change)) = change {
                        self.take_in(kind, change);
                    }
                }
                () = self.clock.sleep_until(next.unwrap_or(rest)) => {}
            }
        }
    }

    fn take_in(&mut self, kind: Kind, change: Change<Value>) {
        match change {
            Change::Reset(objects) => objects.into_iter().for_each(|object| self.observe(kind, object)),
            Change::Set(object) => self.observe(kind, object),
            Change::Gone(object) => {
                let name = name_of(&object);
                self.changed_at = self.clock.now();
                self.due.remove(&name);
                self.objects.remove(&(kind.plural, name));
            }
            Change::Unreadable { .. } => {}
        }
    }

    fn observe(&mut self, kind: Kind, object: Value) {
        let name = name_of(&object);
        let key = (kind.plural, name.clone());
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        let before = self.objects.get(&key).cloned();
        if before.as_ref().is_some_and(|before| version(before) == version(&object)) {
            return;
        }
        self.changed_at = self.clock.now();
        self.objects.insert(key, object.clone());
        if kind != kind::WORKLOAD {
            return;
        }
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        self.names.insert(uid.to_owned(), name.clone());
        if !is_true(&object, "Evicted") || is_true(&object, "Finished") {
            return;
        }
        let said = |object: &Value| {
            let evicted = condition(object, "Evicted").filter(|evicted| evicted["status"] == "True")?;
            Some((evicted["reason"].clone(), evicted["message"].clone()))
        };
        if before.as_ref().and_then(said) != said(&object) {
            self.evictions.push(picture::eviction(&name, &object, &self.names));
        }
        if is_true(&object, "QuotaReserved") {
            let when = self.clock.now().saturating_add(OWNER_TAKES).unwrap_or(Timestamp::MAX);
            self.due.entry(name).or_insert(when);
        }
    }

    async fn finish_evictions(&mut self) -> Result<(), ApiError> {
        let now = self.clock.now();
        let due: Vec<String> =
            self.due.iter().filter(|(_, when)| **when <= now).map(|(name, _)| name.clone()).collect();
        for name in due {
            self.patch_status(&name, given_back).await?;
            self.due.remove(&name);
        }
        Ok(())
    }

    fn picture(&self) -> Value {
        let of = |kind: Kind, record: &dyn Fn(&Value) -> Option<Value>| -> Value {
            let objects = self.objects.iter().filter(|((plural, _), _)| *plural == kind.plural);
            let each = objects.filter_map(|((_, name), object)| Some((name.clone(), record(object)?)));
            Value::Object(each.collect())
        };
        let share = |cohort: &Value| cohort["status"]["fairSharing"].get("weightedShare").cloned();
        let mut evictions = self.evictions.clone();
        let text = |eviction: &Value, key: &str| eviction[key].as_str().unwrap_or_default().to_owned();
        evictions.sort_by_key(|it| (text(it, "workload"), text(it, "reason"), text(it, "by")));
        json!({
            "workloads": of(kind::WORKLOAD, &|object| Some(picture::workload(object, &self.names))),
            "clusterQueues": of(kind::CLUSTER_QUEUE, &|object| Some(picture::cluster_queue(object))),
            "cohortShares": of(kind::COHORT, &share),
            "evictions": evictions,
        })
    }
}

/// What a job controller writes when the evicted job has no pods any more.
fn given_back(object: &Value, now: Timestamp) -> Option<Value> {
    let evicted = condition(object, "Evicted").filter(|evicted| evicted["status"] == "True")?;
    if !is_true(object, "QuotaReserved") {
        return None;
    }
    let text = |field: &str| evicted[field].as_str().unwrap_or_default().to_owned();
    let (reason, message) = (text("reason"), text("message"));
    let requeued = if ["Preempted", "NodeFailures"].contains(&&*reason) { "True" } else { "False" };
    let mut after = object.clone();
    let mut set = |kind: &str, status: &str, reason: &str, message: &str| {
        let conditions = with_condition(&after, kind, status, reason, message, now);
        after["status"]["conditions"] = conditions;
    };
    set("Requeued", requeued, &reason, &message);
    set("QuotaReserved", "False", "Pending", &message);
    if is_true(object, "Admitted") {
        set("Admitted", "False", "NoReservation", "The workload has no reservation");
    }
    Some(json!({ "admission": null, "conditions": after["status"]["conditions"] }))
}

/// The conditions with one of them set; its time moves only if its status does.
fn with_condition(
    object: &Value,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> Value {
    let mut conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let seconds = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let mut new = json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": seconds.to_string(),
    });
    match conditions.iter_mut().find(|there| there["type"] == kind) {
        Some(there) => {
            if there["status"] == status {
                new["lastTransitionTime"] = there["lastTransitionTime"].clone();
            }
            *there = new;
        }
        None => conditions.push(new),
    }
    conditions.into()
}

fn set_quota(groups: &mut Value, flavor: &str, resource: &str, set: &serde_json::Map<String, Value>) {
    let each = groups.as_array_mut().into_iter().flatten();
    let flavors = each.filter_map(|group| group["flavors"].as_array_mut()).flatten();
    let resources = flavors.filter(|there| there["name"] == flavor);
    let resources = resources.filter_map(|there| there["resources"].as_array_mut()).flatten();
    for quota in resources.filter(|there| there["name"] == resource) {
        let Some(fields) = quota.as_object_mut() else { continue };
        fields.extend(set.clone());
        fields.retain(|_, value| !value.is_null());
    }
}

fn manifest(kind: Kind, name: &str, spec: Value) -> Value {
    let mut metadata = json!({ "name": name });
    if kind.namespaced {
        metadata["namespace"] = NAMESPACE.into();
    }
    json!({ "apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata, "spec": spec })
}

fn named(kind: Kind, namespace: &str, name: &str) -> Ref {
    Ref { kind, namespace: namespace.to_owned(), name: name.to_owned() }
}

fn workload_named(name: &str) -> Ref {
    named(kind::WORKLOAD, NAMESPACE, name)
}

fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}
