//! The executor against a scripted server: who is served when, and what happens after failures.

use std::sync::{Arc, Mutex};

use expect_test::{Expect, expect};
use kube::client::Body;
use serde_json::json;
use soroi_clock::Clock;

use super::*;
use crate::intake::Schedulers;
use crate::kind::Kind;
use crate::parsed::Context;

/// A server that answers from a script (200 when it has run out) and writes down what it saw.
#[derive(Clone, Default)]
struct Script {
    answers: Arc<Mutex<VecDeque<u16>>>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Script {
    fn new(answers: &[u16]) -> Self {
        Self { answers: Arc::new(Mutex::new(answers.iter().copied().collect())), ..Self::default() }
    }

    fn lanes(&self, clock: &Clock, limit: usize) -> Lanes {
        let script = self.clone();
        let from = clock.now_millis();
        let face = clock.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let script = script.clone();
            let at = face.now_millis() - from;
            async move {
                let code = script.answers.lock().unwrap().pop_front().unwrap_or(200);
                let path = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
                let line = format!("{at} ms  {} {path} -> {code}", request.method());
                script.seen.lock().unwrap().push(line);
                let body = match code {
                    200 => json!({ "kind": "Job" }),
                    code => {
                        json!({ "kind": "Status", "code": code, "reason": "", "message": "", "status": "Failure" })
                    }
                };
                http::Response::builder().status(code).body(Body::from(body.to_string().into_bytes()))
            }
        });
        let client = kube::Client::new(service, "default");
        let context = Context {
            charging: Default::default(),
            schedulers: Schedulers::default(),
            defaults: Default::default(),
            shared: Default::default(),
        };
        let api = Api::new(client, clock.clone(), Duration::from_secs(1), Arc::new(context));
        Lanes::new(api, limit, 7)
    }

    fn check(&self, expected: Expect) {
        expected.assert_eq(&self.seen.lock().unwrap().join("\n"));
    }
}

fn write(name: &str) -> Write {
    let target = Target { kind: Kind::Job, namespace: "a".into(), name: name.into() };
    Write { target, call: Call::Merge(json!({})) }
}

fn simulated<F: Future>(work: impl FnOnce(Clock) -> F) -> F::Output {
    soroi_clock::simulated_runtime()
        .unwrap()
        .block_on(async { work(Clock::simulated(jiff::Timestamp::UNIX_EPOCH)).await })
}

/// Runs until nothing is left to do; a lane's wish ends when it was fulfilled.
async fn settle(lanes: &mut Lanes, clock: &Clock, wishes: &mut BTreeMap<Name, Vec<Write>>) {
    loop {
        lanes.pump(clock.now_millis());
        if lanes.busy.is_empty() {
            let Some(due) = lanes.next_due() else { return };
            clock.sleep_until(jiff::Timestamp::from_millisecond(due).unwrap()).await;
            continue;
        }
        let done = lanes.next().await;
        lanes.ended(&done, clock.now_millis());
        let wish = wishes.get_mut(&done.lane).unwrap();
        if matches!(done.answer, Answer::Object(_)) && done.write.call != Call::Read {
            wish.retain(|write| write.target != done.write.target);
        }
        lanes.set(&done.lane, wish.clone());
    }
}

fn play(answers: &[u16], limit: usize, wishes: &[(&str, &[&str])], expected: Expect) {
    let script = Script::new(answers);
    simulated(|clock| async move {
        let mut lanes = script.lanes(&clock, limit);
        let mut wishes: BTreeMap<Name, Vec<Write>> = wishes
            .iter()
            .map(|(lane, names)| (Name::from(*lane), names.iter().map(|name| write(name)).collect()))
            .collect();
        for (lane, writes) in &wishes {
            lanes.set(lane, writes.clone());
        }
        settle(&mut lanes, &clock, &mut wishes).await;
        assert!(lanes.is_idle());
        script.check(expected);
    });
}

#[test]
fn who_waits_for_another_lanes_request_has_the_next_turn() {
    play(
        &[],
        2,
        &[("a", &["x"]), ("b", &["x"])],
        expect![[r#"
            0 ms  PATCH x -> 200
            0 ms  PATCH x -> 200"#]],
    );
    play(
        &[500],
        2,
        &[("a", &["x"]), ("b", &["x"])],
        expect![[r#"
        0 ms  PATCH x -> 500
        12 ms  GET x -> 200
        12 ms  PATCH x -> 200
        12 ms  PATCH x -> 200"#]],
    );
}

#[test]
fn lanes_take_turns() {
    play(
        &[],
        1,
        &[("a", &["a1", "a2", "a3"]), ("b", &["b1"]), ("c", &["c1", "c2"])],
        expect![[r#"
            0 ms  PATCH a1 -> 200
            0 ms  PATCH b1 -> 200
            0 ms  PATCH c1 -> 200
            0 ms  PATCH a2 -> 200
            0 ms  PATCH c2 -> 200
            0 ms  PATCH a3 -> 200"#]],
    );
}

#[test]
fn a_failure_is_read_back_before_it_is_tried_again() {
    play(
        &[500, 200, 409, 200, 200],
        4,
        &[("a", &["a1"])],
        expect![[r#"
        0 ms  PATCH a1 -> 500
        12 ms  GET a1 -> 200
        12 ms  PATCH a1 -> 409
        39 ms  GET a1 -> 200
        39 ms  PATCH a1 -> 200"#]],
    );
}

#[test]
fn a_server_in_trouble_is_asked_ever_more_seldom() {
    play(
        &[503; 8],
        4,
        &[("a", &["a1"])],
        expect![[r#"
        0 ms  PATCH a1 -> 503
        12 ms  GET a1 -> 503
        39 ms  GET a1 -> 503
        97 ms  GET a1 -> 503
        208 ms  GET a1 -> 503
        472 ms  GET a1 -> 503
        1053 ms  GET a1 -> 503
        1746 ms  GET a1 -> 503
        3151 ms  GET a1 -> 200
        3151 ms  PATCH a1 -> 200"#]],
    );
}

#[test]
fn one_gang_in_trouble_holds_up_nobody() {
    play(
        &[500, 200, 200, 500, 500],
        1,
        &[("a", &["a1"]), ("b", &["b1", "b2"])],
        expect![[r#"
        0 ms  PATCH a1 -> 500
        0 ms  PATCH b1 -> 200
        0 ms  PATCH b2 -> 200
        12 ms  GET a1 -> 500
        39 ms  GET a1 -> 500
        97 ms  GET a1 -> 200
        97 ms  PATCH a1 -> 200"#]],
    );
}

#[test]
fn the_same_refusal_is_news_once() {
    simulated(|clock| async move {
        let script = Script::new(&[422, 200, 422, 200, 403]);
        let mut lanes = script.lanes(&clock, 1);
        lanes.set(&"l".into(), vec![write("x"), write("x"), write("x")]);
        let mut news = Vec::new();
        while news.len() < 3 {
            lanes.pump(clock.now_millis());
            if lanes.busy.is_empty() {
                let due = lanes.next_due().unwrap();
                clock.sleep_until(jiff::Timestamp::from_millisecond(due).unwrap()).await;
                continue;
            }
            let done = lanes.next().await;
            let before = lanes.trouble.get(&done.write.target).and_then(|trouble| trouble.told.clone());
            lanes.ended(&done, clock.now_millis());
            if let Answer::Refused(refusal) = &done.answer {
                news.push((refusal.code, before.as_ref() != Some(refusal)));
            }
        }
        assert_eq!(news, [(422, true), (422, false), (403, true)]);
    });
}
