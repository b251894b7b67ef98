//! What `watching` promises, as tests.

use std::time::Duration;

use expect_test::{Expect, expect};
use futures::{AsyncBufReadExt, StreamExt};
use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, WatchEvent, WatchParams};
use serde_json::Value;

use super::{World, full_path, run};
use crate::Options;

/// The lines of a watch, one JSON value each.
pub(super) struct Watch {
    lines: std::pin::Pin<Box<dyn futures::Stream<Item = std::io::Result<String>>>>,
}

impl Watch {
    pub(super) async fn start(world: &World, path: &str) -> Self {
        let request = Request::get(full_path(path)).body(Vec::new()).unwrap();
        let reader = world.client.request_stream(request).await.unwrap();
        Self { lines: Box::pin(reader.lines()) }
    }

    /// The events that are there now, and whether the stream has ended.
    pub(super) async fn events(&mut self, world: &World) -> (Vec<Value>, bool) {
        let mut events = Vec::new();
        loop {
            match world.clock.timeout(Duration::from_millis(1), self.lines.next()).await {
                Err(_) => return (events, false),
                Ok(None) => return (events, true),
                Ok(Some(line)) => events.push(serde_json::from_str(&line.unwrap()).unwrap()),
            }
        }
    }

    /// What is there now; nothing more comes within a second. Says so when the stream ends.
    async fn read(&mut self, world: &World) -> String {
        let mut out = String::new();
        loop {
            match world.clock.timeout(Duration::from_secs(1), self.lines.next()).await {
                Err(_) => return out,
                Ok(None) => return out + "< END\n",
                Ok(Some(line)) => out.push_str(&show(&serde_json::from_str(&line.unwrap()).unwrap())),
            }
        }
    }
}

fn show(event: &Value) -> String {
    let object = &event["object"];
    let word = event["type"].as_str().unwrap();
    if word == "ERROR" {
        return format!("< ERROR {} {} {}\n", object["code"], object["reason"], object["message"]);
    }
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().unwrap_or("");
    let note = metadata["annotations"].as_object().map(|a| format!(" {}", Value::Object(a.clone())));
    format!(
        "< {word} {} {name} {}{}\n",
        object["kind"],
        metadata["resourceVersion"],
        note.unwrap_or_default()
    )
}

/// Starts a watch, then tells a story, and shows what the watch says after each step.
fn watched(
    options: Options,
    path: &'static str,
    before: &'static str,
    steps: &'static [&'static str],
    expected: Expect,
) {
    run(options, async |world| {
        let mut out = world.tell(before).await;
        out.push_str(&format!("WATCH {path}\n"));
        let mut watch = Watch::start(&world, path).await;
        out.push_str(&watch.read(&world).await);
        for step in steps {
            out.push_str(&world.tell(step).await);
            out.push_str(&watch.read(&world).await);
        }
        expected.assert_eq(&out);
    });
}

#[test]
fn changes_are_seen_as_they_happen() {
    watched(
        Options::default(),
        "configmaps?watch=true",
        "POST configmaps {metadata: {name: a}}",
        &[
            "POST configmaps {metadata: {name: b}}",
            "PATCH:merge configmaps/a {data: {k: v}}",
            "PATCH:merge configmaps/a {data: {k: v}}",
            "POST /api/v1/namespaces/kube-system/configmaps {metadata: {name: elsewhere}}",
            "DELETE configmaps/a",
        ],
        expect![[r#"
            POST configmaps {metadata: {name: a}}
                201 ConfigMap a
            WATCH configmaps?watch=true
            < ADDED "ConfigMap" a "8"
            POST configmaps {metadata: {name: b}}
                201 ConfigMap b
            < ADDED "ConfigMap" b "9"
            PATCH:merge configmaps/a {data: {k: v}}
                200 ConfigMap a
            < MODIFIED "ConfigMap" a "10"
            PATCH:merge configmaps/a {data: {k: v}}
                200 ConfigMap a
            POST /api/v1/namespaces/kube-system/configmaps {metadata: {name: elsewhere}}
                201 ConfigMap elsewhere
            DELETE configmaps/a
                200 Success
            < DELETED "ConfigMap" a "12"
        "#]],
    );
}

#[test]
fn a_watch_goes_on_where_another_ended() {
    watched(
        Options::default(),
        "configmaps?watch=true&resourceVersion=8",
        "
        POST configmaps {metadata: {name: a}}
        POST configmaps {metadata: {name: b}}
        DELETE configmaps/a
        ",
        &[],
        expect![[r#"
            POST configmaps {metadata: {name: a}}
                201 ConfigMap a
            POST configmaps {metadata: {name: b}}
                201 ConfigMap b
            DELETE configmaps/a
                200 Success
            WATCH configmaps?watch=true&resourceVersion=8
            < ADDED "ConfigMap" b "9"
            < DELETED "ConfigMap" a "10"
        "#]],
    );
}

#[test]
fn too_old_a_revision_is_expired() {
    watched(
        Options { history: 2, ..Options::default() },
        "configmaps?watch=true&resourceVersion=8",
        "
        POST configmaps {metadata: {name: a}}
        POST configmaps {metadata: {name: b}}
        POST configmaps {metadata: {name: c}}
        POST configmaps {metadata: {name: d}}
        GET configmaps?limit=1&continue=380a64656661756c740a61
        ",
        &[],
        expect![[r#"
            POST configmaps {metadata: {name: a}}
                201 ConfigMap a
            POST configmaps {metadata: {name: b}}
                201 ConfigMap b
            POST configmaps {metadata: {name: c}}
                201 ConfigMap c
            POST configmaps {metadata: {name: d}}
                201 ConfigMap d
            GET configmaps?limit=1&continue=380a64656661756c740a61
                410 Expired The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.
            WATCH configmaps?watch=true&resourceVersion=8
            < ERROR 410 "Expired" "too old resource version: 8 (11)"
            < END
        "#]],
    );
}

#[test]
fn a_watcher_that_lags_is_ended() {
    run(Options { history: 2, ..Options::default() }, async |world| {
        let mut watch = Watch::start(&world, "configmaps?watch=true&resourceVersion=0").await;
        world.tell("POST configmaps {metadata: {name: a}}").await;
        let mut seen = watch.read(&world).await;
        for name in ["b", "c", "d"] {
            world.tell(&format!("POST configmaps {{metadata: {{name: {name}}}}}")).await;
        }
        seen.push_str(&watch.read(&world).await);
        expect![[r#"
            < ADDED "ConfigMap" a "8"
            < END
        "#]]
        .assert_eq(&seen);
    });
}

#[test]
fn a_streaming_list_says_when_it_is_complete() {
    watched(
        Options::default(),
        "configmaps?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        "
        POST configmaps {metadata: {name: b}}
        POST configmaps {metadata: {name: a}}
        ",
        &["DELETE configmaps/a"],
        expect![[r#"
            POST configmaps {metadata: {name: b}}
                201 ConfigMap b
            POST configmaps {metadata: {name: a}}
                201 ConfigMap a
            WATCH configmaps?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true
            < ADDED "ConfigMap" a "9"
            < ADDED "ConfigMap" b "8"
            < BOOKMARK "ConfigMap"  "9" {"k8s.io/initial-events-end":"true"}
            DELETE configmaps/a
                200 Success
            < DELETED "ConfigMap" a "10"
        "#]],
    );
}

#[test]
fn objects_enter_and_leave_a_selection() {
    watched(
        Options::default(),
        "configmaps?watch=true&labelSelector=t%3Dx",
        "POST configmaps {metadata: {name: a, labels: {t: x}}}",
        &[
            "PATCH:merge configmaps/a {data: {k: v}}",
            "PATCH:merge configmaps/a {metadata: {labels: {t: z}}}",
            "PATCH:merge configmaps/a {data: {k: w}}",
            "PATCH:merge configmaps/a {metadata: {labels: {t: x}}}",
            "DELETE configmaps/a",
        ],
        expect![[r#"
            POST configmaps {metadata: {name: a, labels: {t: x}}}
                201 ConfigMap a
            WATCH configmaps?watch=true&labelSelector=t%3Dx
            < ADDED "ConfigMap" a "8"
            PATCH:merge configmaps/a {data: {k: v}}
                200 ConfigMap a
            < MODIFIED "ConfigMap" a "9"
            PATCH:merge configmaps/a {metadata: {labels: {t: z}}}
                200 ConfigMap a
            < DELETED "ConfigMap" a "10"
            PATCH:merge configmaps/a {data: {k: w}}
                200 ConfigMap a
            PATCH:merge configmaps/a {metadata: {labels: {t: x}}}
                200 ConfigMap a
            < ADDED "ConfigMap" a "12"
            DELETE configmaps/a
                200 Success
            < DELETED "ConfigMap" a "13"
        "#]],
    );
}

#[test]
fn bookmarks_come_each_minute_and_at_the_end() {
    watched(
        Options::default(),
        "configmaps?watch=true&resourceVersion=0&allowWatchBookmarks=true&timeoutSeconds=90",
        "",
        &[
            "POST pods {metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}
             SLEEP 61",
            "SLEEP 31",
        ],
        expect![[r#"
            WATCH configmaps?watch=true&resourceVersion=0&allowWatchBookmarks=true&timeoutSeconds=90
            POST pods {metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}
                201 Pod p
            < BOOKMARK "ConfigMap"  "8"
            < BOOKMARK "ConfigMap"  "8"
            < END
        "#]],
    );
}

#[test]
fn one_object_and_one_node_can_be_watched() {
    watched(
        Options::default(),
        "/api/v1/pods?watch=true&fieldSelector=spec.nodeName%3Dn1",
        "POST pods {metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}",
        &[
            "POST pods/p/binding {metadata: {name: p}, target: {name: n1}}",
            "DELETE pods/p?gracePeriodSeconds=0",
        ],
        expect![[r#"
            POST pods {metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}
                201 Pod p
            WATCH /api/v1/pods?watch=true&fieldSelector=spec.nodeName%3Dn1
            POST pods/p/binding {metadata: {name: p}, target: {name: n1}}
                201 Success
            < ADDED "Pod" p "9"
            DELETE pods/p?gracePeriodSeconds=0
                200 Pod p
            < DELETED "Pod" p "10"
        "#]],
    );
    watched(
        Options::default(),
        "configmaps/a?watch=true",
        "POST configmaps {metadata: {name: b}}",
        &["POST configmaps {metadata: {name: a}}"],
        expect![[r#"
            POST configmaps {metadata: {name: b}}
                201 ConfigMap b
            WATCH configmaps/a?watch=true
            POST configmaps {metadata: {name: a}}
                201 ConfigMap a
            < ADDED "ConfigMap" a "9"
        "#]],
    );
}

#[test]
fn events_are_watched_in_either_view() {
    watched(
        Options::default(),
        "/apis/events.k8s.io/v1/namespaces/default/events?watch=true",
        "POST events {metadata: {name: a}, involvedObject: {namespace: default, name: p}, message: m}",
        &["PATCH:merge events/a {message: new}", "DELETE events/a"],
        expect![[r#"
            POST events {metadata: {name: a}, involvedObject: {namespace: default, name: p}, message: m}
                201 Event a
            WATCH /apis/events.k8s.io/v1/namespaces/default/events?watch=true
            < ADDED "Event" a "8"
            PATCH:merge events/a {message: new}
                200 Event a
            < MODIFIED "Event" a "9"
            DELETE events/a
                200 Success
            < DELETED "Event" a "10"
        "#]],
    );
}

#[test]
fn a_watch_ends_with_its_kind() {
    let options = Options { crds: vec![super::crds::queues()], ..Options::default() };
    watched(
        options,
        "queues?watch=true",
        "POST queues {metadata: {name: a}}",
        &["DELETE customresourcedefinitions/queues.example.com"],
        expect![[r#"
            POST queues {metadata: {name: a}}
                201 Queue a
            WATCH queues?watch=true
            < ADDED "Queue" a "9"
            DELETE customresourcedefinitions/queues.example.com
                200 Success
            < DELETED "Queue" a "11"
            < END
        "#]],
    );
}

#[test]
fn wrong_watches_are_refused() {
    super::check(
        "
        GET configmaps?watch=true&sendInitialEvents=true
        GET configmaps?watch=true&resourceVersionMatch=NotOlderThan&resourceVersion=5
        GET configmaps?watch=true&resourceVersion=new
        GET configmaps?watch=true&fieldSelector=a%3Db
        ",
        expect![[r#"
            GET configmaps?watch=true&sendInitialEvents=true
                422 Invalid ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan
            GET configmaps?watch=true&resourceVersionMatch=NotOlderThan&resourceVersion=5
                422 Invalid ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided
            GET configmaps?watch=true&resourceVersion=new
                500  resourceVersion: Invalid value: "new": strconv.ParseUint: parsing "new": invalid syntax
            GET configmaps?watch=true&fieldSelector=a%3Db
                400 BadRequest "a" is not a known field selector: only "metadata.name", "metadata.namespace"
        "#]],
    );
}

#[test]
fn metadata_alone_can_be_read() {
    run(Options::default(), async |world| {
        world.tell("POST configmaps {metadata: {name: a}, data: {k: v}}").await;
        let maps: Api<ConfigMap> = Api::default_namespaced(world.client.clone());
        let listed = maps.list_metadata(&Default::default()).await.unwrap();
        assert_eq!(listed.items[0].metadata.name.as_deref(), Some("a"));
        let one = maps.get_metadata("a").await.unwrap();
        assert_eq!(one.types.unwrap().kind, "PartialObjectMetadata");
        let mut stream = maps.watch_metadata(&WatchParams::default(), "0").await.unwrap().boxed();
        assert!(matches!(stream.next().await.unwrap().unwrap(), WatchEvent::Added(_)));
    });
}

#[test]
fn the_kube_client_watches() {
    run(Options::default(), async |world| {
        let maps: Api<ConfigMap> = Api::default_namespaced(world.client.clone());
        let mut stream = maps.watch(&WatchParams::default(), "0").await.unwrap().boxed();
        world.tell("POST configmaps {metadata: {name: a}}").await;
        match stream.next().await.unwrap().unwrap() {
            WatchEvent::Added(map) => assert_eq!(map.metadata.name.as_deref(), Some("a")),
            other => panic!("{other:?}"),
        }
        let listed = maps.list(&Default::default()).await.unwrap();
        assert_eq!(listed.items.len(), 1);
        assert_eq!(listed.metadata.resource_version.unwrap(), world.server.revision().to_string());
    });
}
