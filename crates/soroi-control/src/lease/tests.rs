//! Two replicas and one Lease, told as a log of who leads when.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use expect_test::{Expect, expect};
use kube::client::Body;
use soroi_apiserver::{ApiServer, ApiService};
use tokio::task::JoinSet;
use tower::{Service as _, ServiceBuilder, ServiceExt as _};

use super::fence::Fence;
use super::*;

/// Two replicas, `a` and `b`, each at the end of a line that can be cut.
struct Stage {
    clock: Clock,
    began: Timestamp,
    service: ApiService,
    log: Arc<Mutex<String>>,
    tasks: JoinSet<()>,
}

/// A replica as the stage directs it.
struct Replica {
    standing: watch::Receiver<Standing>,
    resign: watch::Sender<bool>,
    cut: Arc<AtomicBool>,
    task: tokio::task::AbortHandle,
    clock: Clock,
}

fn play<F: Future<Output = Stage>>(story: impl FnOnce(Stage) -> F, expected: Expect) {
    let runtime = soroi_clock::simulated_runtime().unwrap();
    let log = runtime.block_on(async {
        let clock = Clock::simulated("2026-01-01T00:00:00Z".parse().unwrap());
        let service = ApiServer::new(clock.clone(), soroi_apiserver::Options::default()).service();
        let began = clock.now();
        let log = Arc::default();
        let stage = Stage { clock, began, service, log, tasks: JoinSet::new() };
        let log = Arc::clone(&story(stage).await.log);
        let log = log.lock().unwrap();
        log.clone()
    });
    expected.assert_eq(&log);
}

impl Stage {
    /// Starts a replica whose clock is ahead by so many seconds.
    fn start(&mut self, name: &'static str, ahead: u64) -> Replica {
        let clock = Clock::simulated(self.clock.now() + Duration::from_secs(ahead));
        let cut = Arc::new(AtomicBool::new(false));
        let line = (self.service.clone(), Arc::clone(&cut));
        let client = kube::Client::new(
            tower::service_fn(move |request: http::Request<Body>| {
                let (service, cut) = line.clone();
                async move {
                    if cut.load(Ordering::Relaxed) {
                        // Whatever is sent arrives nowhere, and nobody says so.
                        std::future::pending::<()>().await;
                    }
                    service.oneshot(request).await
                }
            }),
            "default",
        );
        let settings = LeaseSettings {
            namespace: "default".into(),
            name: "soroi".into(),
            identity: name.into(),
            duration: Duration::from_secs(15),
            renew_every: Duration::from_secs(2),
            request_timeout: Duration::from_secs(5),
        };
        let (tell, standing) = watch::channel(Standing::Following(None));
        let (resign, resigned) = watch::channel(false);
        let task = self.tasks.spawn(elect(client, clock.clone(), settings, tell, resigned));
        self.follow(name, standing.clone());
        Replica { standing, resign, cut, task, clock }
    }

    /// Writes down every change of who leads, in a replica's eyes.
    fn follow(&mut self, name: &'static str, mut standing: watch::Receiver<Standing>) {
        let (log, clock, began) = (Arc::clone(&self.log), self.clock.clone(), self.began);
        self.tasks.spawn(async move {
            let mut shown = String::new();
            while standing.changed().await.is_ok() {
                let words = match &*standing.borrow_and_update() {
                    Standing::Following(None) => "follows".to_owned(),
                    Standing::Following(Some(leader)) => format!("follows {leader}"),
                    Standing::Leading(term) => format!("leads, epoch {}", term.epoch),
                };
                if words != shown {
                    let at = clock.now().duration_since(began).as_secs_f64();
                    writeln!(log.lock().unwrap(), "{at:.1}s  {name} {words}").unwrap();
                    shown = words;
                }
            }
        });
    }

    async fn seconds(&self, seconds: u64) {
        self.clock.sleep(Duration::from_secs(seconds)).await;
    }

    fn note(&self, words: &str) {
        let at = self.clock.now().duration_since(self.began).as_secs_f64();
        writeln!(self.log.lock().unwrap(), "{at:.1}s  ({words})").unwrap();
    }

    async fn request(&self, method: &str, path: &str) -> Value {
        let client = kube::Client::new(self.service.clone(), "default");
        let request = http::Request::builder().method(method).uri(path).body(Vec::new()).unwrap();
        serde_json::from_str(&client.request_text(request).await.unwrap()).unwrap()
    }
}

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/soroi";

#[test]
fn a_follower_takes_over_when_lease_and_request_timeout_have_passed() {
    play(
        async |mut stage: Stage| {
            let a = stage.start("a", 0);
            stage.seconds(1).await;
            let _b = stage.start("b", 0);
            stage.seconds(60).await;
            stage.note("a dies");
            a.task.abort();
            stage.seconds(60).await;
            let spec = &stage.request("GET", LEASE).await["spec"];
            stage.note(&format!("{} {}", spec["holderIdentity"], spec["leaseTransitions"]));
            stage
        },
        expect![[r#"
            0.0s  a leads, epoch 1
            1.0s  b follows a
            61.0s  (a dies)
            80.0s  b leads, epoch 2
            121.0s  ("b" 2)
        "#]],
    );
}

#[test]
fn a_wrong_clock_changes_nothing() {
    play(
        async |mut stage: Stage| {
            let a = stage.start("a", 0);
            stage.seconds(1).await;
            let _b = stage.start("b", 600);
            stage.seconds(60).await;
            stage.note("a dies");
            a.task.abort();
            stage.seconds(60).await;
            stage
        },
        expect![[r#"
            0.0s  a leads, epoch 1
            1.0s  b follows a
            61.0s  (a dies)
            80.0s  b leads, epoch 2
        "#]],
    );
}

#[test]
fn a_leader_that_is_cut_off_stops_before_the_next_one_begins() {
    play(
        async |mut stage: Stage| {
            let a = stage.start("a", 0);
            stage.seconds(1).await;
            let _b = stage.start("b", 0);
            stage.seconds(60).await;
            stage.note("a is cut off");
            a.cut.store(true, Ordering::Relaxed);
            stage.seconds(60).await;
            stage.note("a is back");
            a.cut.store(false, Ordering::Relaxed);
            stage.seconds(60).await;
            stage
        },
        expect![[r#"
            0.0s  a leads, epoch 1
            1.0s  b follows a
            61.0s  (a is cut off)
            75.0s  a follows
            80.0s  b leads, epoch 2
            121.0s  (a is back)
            123.0s  a follows b
        "#]],
    );
}

/// The API server was away for longer than a term, and there is no other replica.
#[test]
fn a_leader_that_nobody_replaced_leads_again_at_once() {
    play(
        async |mut stage: Stage| {
            let a = stage.start("a", 0);
            stage.seconds(60).await;
            for (seconds, back) in [(16, "back before the last request is given up"), (30, "back")] {
                stage.note("a is cut off");
                a.cut.store(true, Ordering::Relaxed);
                stage.seconds(seconds).await;
                stage.note(back);
                a.cut.store(false, Ordering::Relaxed);
                stage.seconds(30).await;
            }
            stage
        },
        expect![[r#"
            0.0s  a leads, epoch 1
            60.0s  (a is cut off)
            73.0s  a follows
            76.0s  (back before the last request is given up)
            79.0s  a follows a
            79.0s  a leads, epoch 2
            106.0s  (a is cut off)
            120.0s  a follows
            136.0s  (back)
            138.0s  a follows a
            138.0s  a leads, epoch 3
        "#]],
    );
}

#[test]
fn who_resigns_is_followed_at_once() {
    play(
        async |mut stage: Stage| {
            let a = stage.start("a", 0);
            stage.seconds(1).await;
            let _b = stage.start("b", 0);
            stage.seconds(60).await;
            stage.note("a resigns");
            a.resign.send_replace(true);
            stage.seconds(60).await;
            stage
        },
        expect![[r#"
            0.0s  a leads, epoch 1
            1.0s  b follows a
            61.0s  (a resigns)
            61.0s  a follows
            62.0s  b follows
            62.0s  b leads, epoch 2
        "#]],
    );
}

#[test]
fn a_lease_that_somebody_deletes_gets_a_larger_epoch() {
    play(
        async |mut stage: Stage| {
            let _a = stage.start("a", 0);
            stage.seconds(10).await;
            stage.note("the lease is deleted");
            stage.request("DELETE", LEASE).await;
            stage.seconds(30).await;
            stage
        },
        expect![[r#"
            0.0s  a leads, epoch 1
            10.0s  (the lease is deleted)
            12.0s  a follows
            12.0s  a leads, epoch 2
        "#]],
    );
}

/// The line is cut for the Lease alone: other requests still arrive. Those of the old leader must
/// not, once its term is over.
#[test]
fn nothing_is_written_outside_the_own_term() {
    play(
        async |mut stage: Stage| {
            let a = stage.start("a", 0);
            stage.seconds(1).await;
            let b = stage.start("b", 0);
            stage.seconds(60).await;
            stage.note("a is cut off from the lease");
            a.cut.store(true, Ordering::Relaxed);
            let fenced = |replica: &Replica, epoch: i64| {
                let fence = Fence {
                    standing: replica.standing.clone(),
                    epoch,
                    clock: replica.clock.clone(),
                    request_timeout: Duration::from_secs(5),
                };
                ServiceBuilder::new().layer(fence).service(stage.service.clone())
            };
            let (mut first, mut second) = (fenced(&a, 1), fenced(&b, 2));
            let mut shown = String::new();
            for _ in 0..30 {
                stage.seconds(1).await;
                let mut words = Vec::new();
                for (name, line) in [("a", &mut first), ("b", &mut second)] {
                    let write = http::Request::delete("/api/v1/namespaces/default/configmaps/none");
                    let write = write.body(Body::empty()).unwrap();
                    let sent = line.ready().await.unwrap().call(write).await;
                    words.push(match sent {
                        Ok(_) => format!("{name} writes"),
                        Err(error) => error.to_string(),
                    });
                }
                if words.join(", ") != shown {
                    shown = words.join(", ");
                    stage.note(&shown);
                }
            }
            let read = http::Request::get("/api/v1/nodes").body(Body::empty()).unwrap();
            stage.note(&format!("a reads: {}", first.ready().await.unwrap().call(read).await.is_ok()));
            stage
        },
        expect![[r#"
            0.0s  a leads, epoch 1
            1.0s  b follows a
            61.0s  (a is cut off from the lease)
            62.0s  (a writes, not sent: the term of leadership 2 is over)
            75.0s  (not sent: the term of leadership 1 is over, not sent: the term of leadership 2 is over)
            75.0s  a follows
            80.0s  b leads, epoch 2
            81.0s  (not sent: the term of leadership 1 is over, b writes)
            91.0s  (a reads: true)
        "#]],
    );
}
