//! What `events` promises, as tests.

use expect_test::expect;

use super::check;

#[test]
fn an_event_has_two_views() {
    check(
        "
        POST events {metadata: {name: a}, involvedObject: {kind: Pod, name: p, namespace: default}, reason: R, message: hello, source: {component: me}, type: Normal, count: 2, firstTimestamp: '2026-01-01T00:00:00Z'}
        GET /apis/events.k8s.io/v1/namespaces/default/events/a | .regarding .note .deprecatedSource .deprecatedCount .reason .apiVersion
        POST /apis/events.k8s.io/v1/namespaces/default/events {metadata: {name: b}, eventTime: '2026-01-01T00:00:00.000000Z', regarding: {kind: Pod, name: q, namespace: default}, reason: S, action: A, note: there, reportingController: me, reportingInstance: me-1, type: Warning} | .note
        GET events/b | .involvedObject .message .reportingComponent .apiVersion
        GET events?fieldSelector=involvedObject.name%3Dq
        GET events?fieldSelector=involvedObject.kind%3DPod,type%3DWarning
        GET /apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=regarding.name%3Dp | .items.0.note
        PATCH:merge /apis/events.k8s.io/v1/namespaces/default/events/b {series: {count: 2, lastObservedTime: '2026-01-01T00:00:01.000000Z'}, note: again} | .note
        GET events/b | .message .series
        ",
        expect![[r#"
            POST events {metadata: {name: a}, involvedObject: {kind: Pod, name: p, namespace: default}, reason: R, message: hello, source: {component: me}, type: Normal, count: 2, firstTimestamp: '2026-01-01T00:00:00Z'}
                201 Event a
            GET /apis/events.k8s.io/v1/namespaces/default/events/a | .regarding .note .deprecatedSource .deprecatedCount .reason .apiVersion
                200 Event a {"kind":"Pod","name":"p","namespace":"default"} "hello" {"component":"me"} 2 "R" "events.k8s.io/v1"
            POST /apis/events.k8s.io/v1/namespaces/default/events {metadata: {name: b}, eventTime: '2026-01-01T00:00:00.000000Z', regarding: {kind: Pod, name: q, namespace: default}, reason: S, action: A, note: there, reportingController: me, reportingInstance: me-1, type: Warning} | .note
                201 Event b "there"
            GET events/b | .involvedObject .message .reportingComponent .apiVersion
                200 Event b {"kind":"Pod","name":"q","namespace":"default"} "there" "me" "v1"
            GET events?fieldSelector=involvedObject.name%3Dq
                200 EventList [b]
            GET events?fieldSelector=involvedObject.kind%3DPod,type%3DWarning
                200 EventList [b]
            GET /apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=regarding.name%3Dp | .items.0.note
                200 EventList [a] "hello"
            PATCH:merge /apis/events.k8s.io/v1/namespaces/default/events/b {series: {count: 2, lastObservedTime: '2026-01-01T00:00:01.000000Z'}, note: again} | .note
                200 Event b "again"
            GET events/b | .message .series
                200 Event b "again" {"count":2,"lastObservedTime":"2026-01-01T00:00:01.000000Z"}
        "#]],
    );
}

#[test]
fn events_fade_an_hour_after_their_last_change() {
    check(
        "
        POST events {metadata: {name: a}, involvedObject: {namespace: default, name: p}, message: m}
        POST events {metadata: {name: b}, involvedObject: {namespace: default, name: p}, message: m}
        SLEEP 1800
        PATCH:merge events/b {message: again}
        SLEEP 1801
        POST events {metadata: {name: c}, involvedObject: {namespace: default, name: p}, message: m}
        GET events
        ",
        expect![[r#"
            POST events {metadata: {name: a}, involvedObject: {namespace: default, name: p}, message: m}
                201 Event a
            POST events {metadata: {name: b}, involvedObject: {namespace: default, name: p}, message: m}
                201 Event b
            PATCH:merge events/b {message: again}
                200 Event b
            POST events {metadata: {name: c}, involvedObject: {namespace: default, name: p}, message: m}
                201 Event c
            GET events
                200 EventList [b c]
        "#]],
    );
}
