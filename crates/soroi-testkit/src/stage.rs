//! Where is a story played? A cluster, the product in it, and the hands that move them.
//!
//! Everything that a story does goes through the API; only what no API can do (start and stop the
//! product, put an admission webhook of somebody else in the way, look at the product's requests) is the
//! stage's own.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use soroi_apiserver::{
    Admission, AdmissionPhase, AdmissionRequest, AdmissionResponse, ApiService, Operation,
};
use soroi_clock::{Clock, Sleep};
use soroi_cluster::annotation::RUN_FOR;
use soroi_control::config::Config;
use soroi_embedded::{Embedded, Options};
use soroi_engine::decision::Settings;
use soroi_engine::event::Policy;
use soroi_engine::preempt::FairRule;
use tokio::task::JoinSet;

use crate::replica::{Replica, Terms};
use crate::scenario::{self, Injection, Placement, Settings as Told, WaitForPodsReady};
use crate::wire::sight::Onlooker;
use crate::wire::{Trouble, Wire};

/// How long what a story tells of takes where it is played. Simulated time costs nothing; real time
/// is what a test waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    wait_part: u32,
    run_part: u32,
    /// Extra time for what must be seen: machines that compute, processes that start.
    pub patience: Duration,
    /// How long everything may take to go when all is deleted: undo, graceful exits, dead pods.
    pub sweep: Duration,
}

impl Pace {
    /// As long as the story says.
    pub const TOLD: Self =
        Self { wait_part: 1, run_part: 1, patience: Duration::ZERO, sweep: Duration::from_secs(400) };
    /// On a real cluster a wait lasts a tenth, and what must be seen after it may take the rest of
    /// it longer; pods run for a third, enough to be seen running.
    pub const REAL: Self = Self {
        wait_part: 10,
        run_part: 3,
        patience: Duration::from_secs(20),
        sweep: Duration::from_secs(60),
    };

    /// How long a wait lasts. A second or less is about the order of things and stays.
    pub fn wait(&self, told: Duration) -> Duration {
        told.min(Duration::from_secs(1)).max(told / self.wait_part)
    }

    /// The manifest with the pods' running time as it is here.
    pub fn manifest(&self, manifest: &Value) -> Value {
        let mut paced = manifest.clone();
        for at in ["/metadata/annotations", "/spec/template/metadata/annotations"] {
            let Some(time) = paced.pointer_mut(at).and_then(|found| found.get_mut(RUN_FOR)) else { continue };
            if let Some(told) = time.as_str().and_then(scenario::span) {
                *time = format!("{}ms", (told / self.run_part).as_millis()).into();
            }
        }
        paced
    }
}

/// A place where a story can be played.
pub trait Stage {
    /// The time of this place.
    fn clock(&self) -> Clock;
    /// How fast a story goes here.
    fn pace(&self) -> Pace;
    /// A client without faults, with all rights.
    fn client(&self) -> kube::Client;
    /// Starts the product, unless it runs.
    fn start_product(&mut self);
    /// Stops the product, unless it is stopped: its process is gone without a farewell.
    fn stop_product(&mut self);
    /// Puts the replica that leads to sleep for so long: nothing is heard of it, and then it goes on
    /// where it was.
    fn sleep_product(&mut self, span: Duration, how: Sleep);
    /// From now on a container is added to every new pod that matches.
    fn inject(&mut self, injection: &Injection);
    /// Ends the trouble that the stage itself makes, for the last look at what is left.
    fn heal(&mut self);
    /// Has everything that is seen between the product and its API server told, if this place can see it.
    fn look_on(&mut self, _onlooker: Onlooker) {}
    /// Holds the trouble back for a while, if this place makes any.
    fn set_lull(&mut self, _lull: bool) {}
    /// Wakes whoever sleeps.
    fn wake(&mut self) {}
    /// From now on one of so many new pods is refused, as by somebody else's policy; `None`: no longer.
    /// Nothing where that cannot be done.
    fn refuse_pods(&mut self, _one_in: Option<u64>) {}
    /// How many writes the product has sent.
    fn writes(&self) -> u64;
    /// How often the stage itself made trouble.
    fn faults(&self) -> u32;
    /// How many requests the API server was asked, if this place can tell.
    fn api_requests(&self) -> u64 {
        0
    }
    /// The product's last requests, for the trace of a failure.
    fn log(&self) -> Vec<String>;
    /// Why the product ended although nobody stopped it; `None` while it runs as it should.
    fn product_died(&mut self) -> Option<String>;
}

/// The embedded cluster as a stage.
pub struct EmbeddedStage {
    clock: Clock,
    service: ApiService,
    wire: Wire,
    injections: Arc<Injections>,
    /// The rest of the cluster.
    cluster: JoinSet<()>,
    replicas: Vec<Replica>,
    /// What wakes those that sleep.
    alarms: JoinSet<()>,
}

/// Kueue's usual rules of preemption under fair sharing.
const FAIR: [FairRule; 2] = [FairRule::LessThanOrEqualToFinalShare, FairRule::LessThanInitialShare];

/// How replicas are called.
const NAMES: [&str; 3] = ["a", "b", "c"];

impl EmbeddedStage {
    /// Starts a cluster, and the product in it. Must be called within a simulated runtime.
    pub fn new(clock: Clock, placement: Placement, trouble: Trouble, seed: u64, told: &Told) -> Self {
        let injections = Arc::new(Injections::default());
        let options = Options { seed, admission: vec![injections.clone()], ..Options::default() };
        let embedded = Embedded::new(clock.clone(), options);
        let service = embedded.service();
        let mut cluster = JoinSet::new();
        cluster.spawn(embedded.run_cluster());
        let wire = Wire::new(clock.clone(), trouble);
        let wait = told.wait_for_pods_ready.as_ref();
        let settings = Settings {
            placement: policy(placement),
            block_admission: wait.is_some_and(|wait| wait.block_admission),
            fair_sharing: told.fair_sharing.then(|| FAIR.to_vec()),
            ..Settings::default()
        };
        let wait_for_pods_ready = wait.map(WaitForPodsReady::rules);
        let terms = Terms {
            clock: clock.clone(),
            service: service.clone(),
            wire: wire.clone(),
            config: Config { settings, seed, wait_for_pods_ready, ..Config::default() },
            elects: told.replicas > 1,
            astray: told.astray,
        };
        let names = NAMES.into_iter().take(told.replicas);
        let replicas = names.map(|name| Replica::new(name, terms.clone())).collect();
        let mut stage = Self { clock, service, wire, injections, cluster, replicas, alarms: JoinSet::new() };
        stage.start_product();
        stage
    }
}

impl Stage for EmbeddedStage {
    fn clock(&self) -> Clock {
        self.clock.clone()
    }

    fn pace(&self) -> Pace {
        Pace::TOLD
    }

    fn client(&self) -> kube::Client {
        kube::Client::new(self.service.clone(), "default")
    }

    fn start_product(&mut self) {
        self.replicas.iter_mut().for_each(Replica::start);
    }

    fn stop_product(&mut self) {
        self.replicas.iter_mut().for_each(Replica::stop);
    }

    fn sleep_product(&mut self, span: Duration, how: Sleep) {
        let Some(machine) = self.replicas.iter().find_map(Replica::leading) else { return };
        machine.sleep(how);
        let clock = self.clock.clone();
        self.alarms.spawn(async move {
            clock.sleep(span).await;
            machine.wake();
        });
    }

    fn inject(&mut self, injection: &Injection) {
        self.injections.list.lock().unwrap_or_else(PoisonError::into_inner).push(injection.clone());
    }

    fn heal(&mut self) {
        self.wire.heal();
        self.replicas.iter().for_each(Replica::wake);
    }

    fn look_on(&mut self, onlooker: Onlooker) {
        self.wire.look_on(onlooker);
    }

    fn set_lull(&mut self, lull: bool) {
        self.wire.set_lull(lull);
    }

    fn wake(&mut self) {
        self.replicas.iter().for_each(Replica::wake);
    }

    fn refuse_pods(&mut self, one_in: Option<u64>) {
        let mut refusals = self.injections.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        refusals.one_in = one_in;
    }

    fn writes(&self) -> u64 {
        self.wire.writes()
    }

    fn faults(&self) -> u32 {
        self.wire.faults()
    }

    fn api_requests(&self) -> u64 {
        self.service.requests()
    }

    fn log(&self) -> Vec<String> {
        self.wire.log()
    }

    fn product_died(&mut self) -> Option<String> {
        if let Some(ended) = self.replicas.iter_mut().find_map(Replica::ended) {
            return Some(ended);
        }
        let ended = self.cluster.try_join_next()?;
        Some(ended.map_or_else(|error| error.to_string(), |()| "the embedded cluster ended".to_owned()))
    }
}

fn policy(placement: Placement) -> Policy {
    match placement {
        Placement::Unified => Policy::Unified,
        Placement::TopologyOnly => Policy::TopologyOnly,
        Placement::AfterAdmission => Policy::AfterAdmission,
        Placement::QuotaOnly => Policy::QuotaOnly,
    }
}

/// Somebody else's admission webhook: adds containers to new pods, and refuses some.
#[derive(Default)]
struct Injections {
    list: Mutex<Vec<Injection>>,
    refusals: Mutex<Refusals>,
}

/// Every n-th pod that a controller makes is refused.
#[derive(Default)]
struct Refusals {
    one_in: Option<u64>,
    asked: u64,
}

impl Refusals {
    fn refuses(&mut self, pod: &Value) -> bool {
        let Some(one_in) = self.one_in.filter(|_| pod["metadata"]["ownerReferences"].is_array()) else {
            return false;
        };
        self.asked += 1;
        self.asked.is_multiple_of(one_in)
    }
}

impl Admission for Injections {
    fn admit(&self, request: &AdmissionRequest<'_>) -> AdmissionResponse {
        let create = request.operation == Operation::Create && request.phase == AdmissionPhase::Mutating;
        if !create || request.resource != "pods" || !request.subresource.is_empty() {
            return AdmissionResponse::allow();
        }
        let refuses = |pod| self.refusals.lock().unwrap_or_else(PoisonError::into_inner).refuses(pod);
        if request.object.is_some_and(refuses) {
            return AdmissionResponse::forbid("pods are refused for a while");
        }
        let list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(pod) = request.object else { return AdmissionResponse::allow() };
        let fitting: Vec<&Injection> = list.iter().filter(|injection| wants(injection, pod)).collect();
        if fitting.is_empty() {
            return AdmissionResponse::allow();
        }
        let mut pod = pod.clone();
        for injection in fitting {
            if let Some(containers) = pod["spec"]["containers"].as_array_mut() {
                containers.push(injection.container.clone());
            }
        }
        AdmissionResponse::replace(pod)
    }
}

fn wants(injection: &Injection, pod: &Value) -> bool {
    let has = |container: &Value| container["name"] == injection.container["name"];
    let there = pod["spec"]["containers"].as_array().is_some_and(|containers| containers.iter().any(has));
    let labels = &pod["metadata"]["labels"];
    !there && injection.labels.iter().all(|(key, value)| labels[key] == value.as_str())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn real_time_is_waited_for_in_part() {
        let waits = ["500ms", "1s", "2s", "10s", "40s", "300s"].map(|told| {
            let real = Pace::REAL.wait(scenario::span(told).unwrap());
            format!("{told} {real:?}")
        });
        expect!["500ms 500ms, 1s 1s, 2s 1s, 10s 1s, 40s 4s, 300s 30s"].assert_eq(&waits.join(", "));
    }

    #[test]
    fn pods_run_for_a_third_in_real_time() {
        let pod = json!({"metadata": {"annotations": {RUN_FOR: "30s", "other": "30s"}}});
        let job = json!({"spec": {"template": pod}});
        assert_eq!(
            Pace::REAL.manifest(&pod)["metadata"]["annotations"],
            json!({RUN_FOR: "10000ms", "other": "30s"})
        );
        let template = &Pace::REAL.manifest(&job)["spec"]["template"];
        assert_eq!(template["metadata"]["annotations"][RUN_FOR], "10000ms");
        assert_eq!(Pace::TOLD.wait(Duration::from_secs(300)), Duration::from_secs(300));
    }
}
