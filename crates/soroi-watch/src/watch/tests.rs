//! The loop against a scripted server, under simulated time: what it asks, when, and what it tells.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use expect_test::{Expect, expect};
use futures::StreamExt as _;
use http_body_util::BodyExt as _;
use http_body_util::StreamBody;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;

use super::*;

/// What the scripted server does with one request.
enum Reply {
    /// Answers with this status and body.
    Full(u16, String),
    /// Answers 200, sends these lines, and closes.
    Lines(Vec<String>),
    /// Answers 200, sends these lines, and then nothing more, for ever.
    Silent(Vec<String>),
    /// Never answers.
    Lost,
}

use Reply::{Full, Lines, Lost, Silent};

fn object(name: &str, version: u32) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","namespace":"d","resourceVersion":"{version}"}}}}"#
    )
}

/// An object that does not decode as a ConfigMap.
fn bad(name: &str, version: u32) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"d","resourceVersion":"{version}"}},"data":{{"k":1}}}}"#
    )
}

fn list(version: u32, next: &str, items: &[String]) -> Reply {
    let items = items.join(",");
    Full(
        200,
        format!(r#"{{"items":[{items}],"metadata":{{"resourceVersion":"{version}","continue":"{next}"}}}}"#),
    )
}

fn event(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

fn status(code: u16) -> String {
    format!(
        r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","code":{code},"message":"told so","reason":"X"}}"#
    )
}

fn bookmark(version: u32) -> String {
    event("BOOKMARK", &format!(r#"{{"metadata":{{"resourceVersion":"{version}"}}}}"#))
}

/// Serves `script` and then never answers again; compares requests and changes of two hours.
fn check(script: Vec<Reply>, expected: Expect) {
    expected.assert_eq(&transcript(script, 7));
}

fn transcript(script: Vec<Reply>, seed: u64) -> String {
    let runtime = soroi_clock::simulated_runtime().unwrap();
    runtime.block_on(async {
        let clock = Clock::simulated(Timestamp::UNIX_EPOCH);
        let log = Arc::new(Mutex::new(String::new()));
        let script = Mutex::new(script.into_iter());
        let service = {
            let (log, clock) = (log.clone(), clock.clone());
            tower::service_fn(move |request: http::Request<kube::client::Body>| {
                let reply = script.lock().unwrap().next().unwrap_or(Lost);
                let at = clock.now_millis();
                writeln!(log.lock().unwrap(), "> {at:>6} ms {}", request.uri()).unwrap();
                answer(reply)
            })
        };
        let client = kube::Client::new(service, "default");
        let mut changes = watch::<ConfigMap>(client, clock.clone(), Query::path("/x"), seed);
        let reading = async {
            while let Some(change) = changes.next().await {
                let text = describe(change);
                writeln!(log.lock().unwrap(), "< {text}").unwrap();
            }
        };
        clock.timeout(Duration::from_secs(7200), reading).await.unwrap_err();
        let log = log.lock().unwrap().clone();
        // What the dead server is asked at the end is the same in every story.
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines.iter().rposition(|line| line.starts_with('<')).unwrap_or(0) + 2;
        lines[..tail.min(lines.len())].join("\n") + "\n"
    })
}

type Answer = http::Response<http_body_util::combinators::UnsyncBoxBody<Bytes, Infallible>>;

async fn answer(reply: Reply) -> Result<Answer, Infallible> {
    let (code, lines, silent) = match reply {
        Full(code, body) => (code, vec![body], false),
        Lines(lines) => (200, lines, false),
        Silent(lines) => (200, lines, true),
        Lost => std::future::pending().await,
    };
    let frames = lines.into_iter().map(|line| Ok(http_body::Frame::data(Bytes::from(line))));
    let rest = futures::stream::iter((!silent).then_some(())).map(|()| None);
    let rest = rest.chain(futures::stream::pending()).take(1).filter_map(std::future::ready);
    let body = StreamBody::new(futures::stream::iter(frames).chain(rest)).boxed_unsync();
    Ok(http::Response::builder().status(code).body(body).unwrap())
}

fn describe(change: Change<ConfigMap>) -> String {
    let name = |object: &ConfigMap| object.metadata.name.clone().unwrap_or_default();
    match change {
        Change::Reset(all) => format!("Reset {:?}", all.iter().map(name).collect::<Vec<_>>()),
        Change::Set(object) => format!("Set {}", name(&object)),
        Change::Gone(object) => format!("Gone {}", name(&object)),
        Change::Unreadable { namespace, name, error } => format!("Unreadable {namespace}/{name}: {error}"),
    }
}

#[test]
fn lists_in_pages_then_follows_and_resumes_after_the_last_bookmark() {
    check(
        vec![
            list(5, "more", &[object("a", 1), object("b", 2)]),
            list(5, "", &[object("c", 3)]),
            Lines(vec![
                event("ADDED", &object("d", 6)),
                event("MODIFIED", &object("a", 7)),
                event("DELETED", &object("b", 8)),
                bookmark(12),
            ]),
            Lines(vec![event("ADDED", &object("e", 13))]),
        ],
        expect![[r#"
            >      0 ms /x?limit=500
            >      0 ms /x?limit=500&continue=more
            < Reset ["a", "b", "c"]
            >      0 ms /x?watch=true&resourceVersion=5&allowWatchBookmarks=true&timeoutSeconds=241
            < Set d
            < Set a
            < Gone b
            >      0 ms /x?watch=true&resourceVersion=12&allowWatchBookmarks=true&timeoutSeconds=294
            < Set e
            >      0 ms /x?watch=true&resourceVersion=13&allowWatchBookmarks=true&timeoutSeconds=274
        "#]],
    );
}

#[test]
fn one_unreadable_object_does_not_hide_the_others() {
    check(
        vec![
            list(5, "", &[object("a", 1), bad("broken", 2), object("c", 3)]),
            Lines(vec![
                event("MODIFIED", &bad("broken", 6)),
                event("MODIFIED", &object("broken", 7)),
                event("DELETED", &bad("broken", 8)),
            ]),
        ],
        expect![[r#"
            >      0 ms /x?limit=500
            < Reset ["a", "c"]
            < Unreadable d/broken: data.k: invalid type: integer `1`, expected a string
            >      0 ms /x?watch=true&resourceVersion=5&allowWatchBookmarks=true&timeoutSeconds=241
            < Unreadable d/broken: data.k: invalid type: integer `1`, expected a string at line 1 column 109
            < Set broken
            < Unreadable d/broken: data.k: invalid type: integer `1`, expected a string at line 1 column 108
            >      0 ms /x?watch=true&resourceVersion=8&allowWatchBookmarks=true&timeoutSeconds=294
        "#]],
    );
}

#[test]
fn a_forgotten_version_is_listed_anew_at_once_but_never_in_a_busy_loop() {
    check(
        vec![
            list(5, "", &[object("a", 1)]),
            Lines(vec![event("ADDED", &object("b", 6)), event("ERROR", &status(410))]),
            list(9, "", &[object("b", 6)]),
            Full(410, status(410)),
            list(10, "", &[object("b", 6)]),
            Lines(vec![event("ERROR", &status(410))]),
            list(11, "", &[object("b", 6)]),
        ],
        expect![[r#"
            >      0 ms /x?limit=500
            < Reset ["a"]
            >      0 ms /x?watch=true&resourceVersion=5&allowWatchBookmarks=true&timeoutSeconds=241
            < Set b
            >      0 ms /x?limit=500
            < Reset ["b"]
            >      0 ms /x?watch=true&resourceVersion=9&allowWatchBookmarks=true&timeoutSeconds=294
            >     64 ms /x?limit=500
            < Reset ["b"]
            >     64 ms /x?watch=true&resourceVersion=10&allowWatchBookmarks=true&timeoutSeconds=274
            >    200 ms /x?limit=500
            < Reset ["b"]
            >    200 ms /x?watch=true&resourceVersion=11&allowWatchBookmarks=true&timeoutSeconds=267
        "#]],
    );
}

#[test]
fn a_list_whose_next_page_has_expired_is_taken_whole() {
    check(
        vec![list(5, "more", &[object("a", 1)]), Full(410, status(410)), list(9, "", &[object("b", 7)])],
        expect![[r#"
            >      0 ms /x?limit=500
            >      0 ms /x?limit=500&continue=more
            >      0 ms /x
            < Reset ["b"]
            >      0 ms /x?watch=true&resourceVersion=9&allowWatchBookmarks=true&timeoutSeconds=241
        "#]],
    );
}

#[test]
fn failures_back_off_and_progress_forgives_them() {
    check(
        vec![
            Full(503, status(503)),
            Full(500, "not even a status".into()),
            Full(200, "{\"items\":[],\"metadata\":{}}".into()),
            list(5, "", &[]),
            Full(429, status(429)),
            Lines(vec![]),
            Lines(vec!["rubbish\n".into()]),
            Lines(vec![event("ERROR", &status(500))]),
            Lines(vec![event("ADDED", &object("a", 6)), event("NEWS", "{}")]),
        ],
        expect![[r#"
            >      0 ms /x?limit=500
            >     64 ms /x?limit=500
            >    200 ms /x?limit=500
            >    491 ms /x?limit=500
            < Reset []
            >    491 ms /x?watch=true&resourceVersion=5&allowWatchBookmarks=true&timeoutSeconds=241
            >   1050 ms /x?watch=true&resourceVersion=5&allowWatchBookmarks=true&timeoutSeconds=294
            >   2372 ms /x?watch=true&resourceVersion=5&allowWatchBookmarks=true&timeoutSeconds=274
            >   5281 ms /x?watch=true&resourceVersion=5&allowWatchBookmarks=true&timeoutSeconds=267
            >   8751 ms /x?watch=true&resourceVersion=5&allowWatchBookmarks=true&timeoutSeconds=254
            < Set a
            >   8806 ms /x?watch=true&resourceVersion=6&allowWatchBookmarks=true&timeoutSeconds=268
        "#]],
    );
}

#[test]
fn a_silent_watch_ends_by_the_clock() {
    check(
        vec![
            list(5, "", &[]),
            Silent(vec![bookmark(6)]),
            Silent(vec!["\n".into()]),
            Lines(vec![event("ADDED", &object("a", 7))]),
        ],
        expect![[r#"
            >      0 ms /x?limit=500
            < Reset []
            >      0 ms /x?watch=true&resourceVersion=5&allowWatchBookmarks=true&timeoutSeconds=241
            > 246064 ms /x?watch=true&resourceVersion=6&allowWatchBookmarks=true&timeoutSeconds=294
            > 545132 ms /x?watch=true&resourceVersion=6&allowWatchBookmarks=true&timeoutSeconds=274
            < Set a
            > 545132 ms /x?watch=true&resourceVersion=7&allowWatchBookmarks=true&timeoutSeconds=267
        "#]],
    );
}

#[test]
fn a_version_that_cannot_be_passed_is_given_up() {
    let mut script = vec![list(5, "", &[object("a", 1)])];
    script.extend((0..=RESUMES_MAX).map(|_| Lines(vec!["rubbish\n".into()])));
    script.push(list(8, "", &[object("a", 1)]));
    check(
        script,
        expect![[r#"
            >      0 ms /x?limit=500
            < Reset ["a"]
            >      0 ms /x?watch=true&resourceVersion=5&allowWatchBookmarks=true&timeoutSeconds=241
            >     64 ms /x?watch=true&resourceVersion=5&allowWatchBookmarks=true&timeoutSeconds=294
            >    200 ms /x?watch=true&resourceVersion=5&allowWatchBookmarks=true&timeoutSeconds=274
            >    491 ms /x?watch=true&resourceVersion=5&allowWatchBookmarks=true&timeoutSeconds=267
            >   1050 ms /x?watch=true&resourceVersion=5&allowWatchBookmarks=true&timeoutSeconds=254
            >   2372 ms /x?watch=true&resourceVersion=5&allowWatchBookmarks=true&timeoutSeconds=268
            >   5281 ms /x?watch=true&resourceVersion=5&allowWatchBookmarks=true&timeoutSeconds=259
            >   8751 ms /x?watch=true&resourceVersion=5&allowWatchBookmarks=true&timeoutSeconds=248
            >  15779 ms /x?watch=true&resourceVersion=5&allowWatchBookmarks=true&timeoutSeconds=264
            >  30331 ms /x?limit=500
            < Reset ["a"]
            >  30331 ms /x?watch=true&resourceVersion=8&allowWatchBookmarks=true&timeoutSeconds=246
        "#]],
    );
}

#[test]
fn the_same_seed_waits_the_same_and_another_does_not() {
    let script = || vec![Full(503, String::new()), Full(503, String::new()), list(5, "", &[])];
    assert_eq!(transcript(script(), 1), transcript(script(), 1));
    assert_ne!(transcript(script(), 1), transcript(script(), 2));
}
