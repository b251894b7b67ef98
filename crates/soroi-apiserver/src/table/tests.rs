//! What `kubectl get -o wide` shows, for a few objects of each kind whose row is put together.

use expect_test::{Expect, expect};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Column, of_builtin, of_custom};

/// 2026-01-01, ten minutes past midnight.
fn now() -> Timestamp {
    "2026-01-01T00:10:00Z".parse().unwrap()
}

/// Rows of objects below the columns' names, as kubectl draws them; `*` marks a wide column.
fn check(columns: &[Column], objects: &[Value], expected: Expect) {
    let head = columns.iter().map(|column| {
        let wide = if column.priority > 0 { "*" } else { "" };
        format!("{}{wide}", column.name.to_uppercase())
    });
    let mut lines: Vec<Vec<String>> = vec![head.collect()];
    for object in objects {
        let shown = |column: &Column| match column.cell(object, now()) {
            Value::String(text) => text,
            other => other.to_string(),
        };
        lines.push(columns.iter().map(shown).collect());
    }
    let text: String = lines.iter().map(|cells| format!("{}\n", cells.join(" | "))).collect();
    expected.assert_eq(&text);
}

fn pod(name: &str, spec: Value, status: Value) -> Value {
    let mut pod = json!({
        "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"containers": [{"name": "a"}, {"name": "b"}]},
        "status": status,
    });
    json_patch::merge(&mut pod["spec"], &spec);
    pod
}

#[test]
fn pods_show_what_their_containers_do() {
    let running = json!({"running": {}});
    let ended = |reason: &str, code: i64| json!({"terminated": {"reason": reason, "exitCode": code}});
    let containers = |a: &Value, b: &Value| {
        let one = |name: &str, state: &Value| json!({"name": name, "state": state, "ready": state["running"].is_object(), "restartCount": 0});
        json!([one("a", a), one("b", b)])
    };
    let status =
        |phase: &str, a: &Value, b: &Value| json!({"phase": phase, "containerStatuses": containers(a, b)});
    let waiting = json!({"waiting": {"reason": "CrashLoopBackOff"}});
    let mut crashing = status("Running", &running, &waiting);
    crashing["containerStatuses"][1]["restartCount"] = 3.into();
    crashing["containerStatuses"][1]["lastState"] =
        json!({"terminated": {"finishedAt": "2026-01-01T00:09:30Z"}});
    let mut ready = status("Running", &running, &ended("Completed", 0));
    ready["conditions"] = json!([{"type": "Ready", "status": "True"}, {"type": "gate", "status": "True"}]);
    ready["podIPs"] = json!([{"ip": "10.0.0.1"}]);
    let mut going = pod("going", json!({"nodeName": "n1"}), status("Running", &running, &running));
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:09:00Z".into();
    let mut lost = going.clone();
    lost["metadata"]["name"] = "lost".into();
    lost["status"]["reason"] = "NodeLost".into();
    let init = |state: Value| json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": state, "restartCount": 0}]});
    let with_init = json!({"initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}]});
    let pods = [
        pod("new", json!({}), json!({"phase": "Pending"})),
        pod(
            "gated",
            json!({}),
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}),
        ),
        pod("running", json!({"nodeName": "n1"}), status("Running", &running, &running)),
        pod(
            "half",
            json!({"nodeName": "n1", "readinessGates": [{"conditionType": "gate"}, {"conditionType": "other"}]}),
            ready,
        ),
        pod("crashing", json!({}), crashing),
        pod("failed", json!({}), status("Failed", &ended("Completed", 0), &ended("Error", 1))),
        pod("code", json!({}), status("Failed", &ended("", 7), &ended("Completed", 0))),
        pod("done", json!({}), status("Succeeded", &ended("Completed", 0), &ended("Completed", 0))),
        pod("refused", json!({}), json!({"phase": "Failed", "reason": "OutOfcpu"})),
        pod("init", with_init.clone(), init(running.clone())),
        pod("init-failed", with_init.clone(), init(ended("Error", 2))),
        pod("init-waits", with_init, init(json!({"waiting": {"reason": "ImagePullBackOff"}}))),
        going,
        lost,
    ];
    check(
        &of_builtin("", "Pod"),
        &pods,
        expect![[r#"
        NAME | READY | STATUS | RESTARTS | AGE | IP* | NODE* | NOMINATED NODE* | READINESS GATES*
        new | 0/2 | Pending | 0 | 10m | <none> | <none> | <none> | <none>
        gated | 0/2 | SchedulingGated | 0 | 10m | <none> | <none> | <none> | <none>
        running | 2/2 | Running | 0 | 10m | <none> | n1 | <none> | <none>
        half | 1/2 | Running | 0 | 10m | 10.0.0.1 | n1 | <none> | 1/2
        crashing | 1/2 | CrashLoopBackOff | 3 (30s ago) | 10m | <none> | <none> | <none> | <none>
        failed | 0/2 | Error | 0 | 10m | <none> | <none> | <none> | <none>
        code | 0/2 | ExitCode:7 | 0 | 10m | <none> | <none> | <none> | <none>
        done | 0/2 | Completed | 0 | 10m | <none> | <none> | <none> | <none>
        refused | 0/2 | OutOfcpu | 0 | 10m | <none> | <none> | <none> | <none>
        init | 0/3 | Init:0/2 | 0 | 10m | <none> | <none> | <none> | <none>
        init-failed | 0/3 | Init:Error | 0 | 10m | <none> | <none> | <none> | <none>
        init-waits | 0/3 | Init:ImagePullBackOff | 0 | 10m | <none> | <none> | <none> | <none>
        going | 2/2 | Terminating | 0 | 10m | <none> | n1 | <none> | <none>
        lost | 2/2 | Unknown | 0 | 10m | <none> | n1 | <none> | <none>
    "#]],
    );
}

#[test]
fn nodes_show_their_state_and_roles() {
    let node = |name: &str, labels: Value, cordoned: bool, conditions: Value| {
        json!({
            "metadata": {"name": name, "labels": labels, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"unschedulable": cordoned}, "status": {"conditions": conditions},
        })
    };
    let ready = |status: &str| json!([{"type": "Ready", "status": status}]);
    let mut full = node(
        "full",
        json!({"kubernetes.io/role": "z", "node-role.kubernetes.io/a": ""}),
        true,
        ready("True"),
    );
    full["status"]["addresses"] = json!([{"type": "InternalIP", "address": "10.0.0.1"}]);
    full["status"]["nodeInfo"] = json!({"kubeletVersion": "v1.36.1", "osImage": "os", "kernelVersion": "6", "architecture": "amd64", "containerRuntimeVersion": "c://1"});
    let nodes = [
        full,
        node("new", json!({}), false, json!([])),
        node("lost", json!({"node-role.kubernetes.io/control-plane": ""}), false, ready("Unknown")),
    ];
    check(
        &of_builtin("", "Node"),
        &nodes,
        expect![[r#"
        NAME | STATUS | ROLES | AGE | VERSION | INTERNAL-IP* | EXTERNAL-IP* | OS-IMAGE* | KERNEL-VERSION* | CONTAINER-RUNTIME*
        full | Ready,SchedulingDisabled | a,z | 10m | v1.36.1 | 10.0.0.1 | <none> | os | 6 (amd64) | c://1
        new | Unknown | <none> | 10m |  | <none> | <none> | <unknown> | <unknown> | <unknown>
        lost | NotReady | control-plane | 10m |  | <none> | <none> | <unknown> | <unknown> | <unknown>
    "#]],
    );
}

#[test]
fn jobs_show_how_far_they_are() {
    let job = |name: &str, spec: Value, status: Value| {
        json!({
            "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": spec, "status": status,
        })
    };
    let is = |condition: &str| json!([{"type": condition, "status": "True"}]);
    let spec = json!({
        "parallelism": 2, "completions": 4, "selector": {"matchLabels": {"a": "b"}},
        "template": {"spec": {"containers": [{"name": "x", "image": "i"}, {"name": "y", "image": "j"}]}},
    });
    let jobs = [
        job("stopped", spec.clone(), json!({"conditions": is("Suspended")})),
        job("running", spec, json!({"startTime": "2026-01-01T00:01:00Z", "succeeded": 1})),
        job(
            "done",
            json!({"completions": 1}),
            json!({
                "startTime": "2026-01-01T00:01:00Z", "completionTime": "2026-01-01T00:01:30Z", "succeeded": 1,
                "conditions": is("Complete"),
            }),
        ),
        job("queue", json!({"parallelism": 3}), json!({"conditions": is("Failed")})),
        job("single", json!({"parallelism": 1}), json!({})),
    ];
    check(
        &of_builtin("batch", "Job"),
        &jobs,
        expect![[r#"
        NAME | STATUS | COMPLETIONS | DURATION | AGE | CONTAINERS* | IMAGES* | SELECTOR*
        stopped | Suspended | 0/4 |  | 10m | x,y | i,j | a=b
        running | Running | 1/4 | 9m | 10m | x,y | i,j | a=b
        done | Complete | 1/1 | 30s | 10m |  |  | <none>
        queue | Failed | 0/1 of 3 |  | 10m |  |  | <none>
        single | Running | 0/1 |  | 10m |  |  | <none>
    "#]],
    );
}

#[test]
fn events_show_what_was_last() {
    let event = |of: Value| {
        let mut event = json!({"metadata": {"name": "e"}, "type": "Normal", "reason": "R", "message": " m\n",
            "involvedObject": {"kind": "Pod", "name": "p"}});
        json_patch::merge(&mut event, &of);
        event
    };
    let events = [
        event(
            json!({"firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:09:00Z", "count": 5,
            "source": {"component": "kubelet", "host": "n1"}}),
        ),
        event(
            json!({"eventTime": "2026-01-01T00:09:00.000000Z", "reportingComponent": "soroi", "reportingInstance": "s-0"}),
        ),
        event(
            json!({"eventTime": "2026-01-01T00:05:00.000000Z", "series": {"count": 3, "lastObservedTime": "2026-01-01T00:09:59.000000Z"}}),
        ),
        event(json!({"involvedObject": {"name": null, "fieldPath": "spec.containers{a}"}})),
    ];
    check(
        &of_builtin("", "Event"),
        &events,
        expect![[r#"
        LAST SEEN | TYPE | REASON | OBJECT | SUBOBJECT* | SOURCE* | MESSAGE | FIRST SEEN* | COUNT* | NAME*
        60s | Normal | R | pod/p |  | kubelet, n1 | m | 10m | 5 | e
        60s | Normal | R | pod/p |  | soroi, s-0 | m | 60s | 1 | e
        1s | Normal | R | pod/p |  |  | m | 5m | 3 | e
        <unknown> | Normal | R | pod | spec.containers{a} |  | m | <unknown> | 1 | e
    "#]],
    );
}

#[test]
fn small_kinds_have_their_columns() {
    let object = |of: Value| {
        let mut object = json!({"metadata": {"name": "o", "creationTimestamp": "2026-01-01T00:00:00Z"}});
        json_patch::merge(&mut object, &of);
        object
    };
    let service = object(
        json!({"spec": {"type": "LoadBalancer", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 80, "nodePort": 30080}, {"port": 53, "protocol": "UDP"}], "selector": {"a": "b"}}}),
    );
    check(
        &of_builtin("", "Service"),
        &[service, object(json!({"spec": {"type": "ExternalName", "externalName": "x.example"}}))],
        expect![[r#"
            NAME | TYPE | CLUSTER-IP | EXTERNAL-IP | PORT(S) | AGE | SELECTOR*
            o | LoadBalancer | 10.0.0.1 | <pending> | 80:30080/TCP,53/UDP | 10m | a=b
            o | ExternalName | <none> | x.example | <none> | 10m | <none>
        "#]],
    );
    let quota = object(json!({"status": {"hard": {"pods": "5", "limits.cpu": "2"}, "used": {"pods": "1"}}}));
    check(
        &of_builtin("", "ResourceQuota"),
        &[quota],
        expect![[r#"
        NAME | REQUEST | LIMIT | AGE
        o | pods: 1/5 | limits.cpu: 0/2 | 10m
    "#]],
    );
    let budget = object(json!({"spec": {"maxUnavailable": "10%"}, "status": {"disruptionsAllowed": 2}}));
    check(
        &of_builtin("policy", "PodDisruptionBudget"),
        &[budget],
        expect![[r#"
        NAME | MIN AVAILABLE | MAX UNAVAILABLE | ALLOWED DISRUPTIONS | AGE
        o | N/A | 10% | 2 | 10m
    "#]],
    );
    let claim = object(
        json!({"spec": {"volumeName": "v", "storageClassName": "fast", "volumeMode": "Block"}, "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"]}}),
    );
    check(
        &of_builtin("", "PersistentVolumeClaim"),
        &[claim, object(json!({"status": {"phase": "Pending"}}))],
        expect![[r#"
            NAME | STATUS | VOLUME | CAPACITY | ACCESS MODES | STORAGECLASS | VOLUMEATTRIBUTESCLASS | AGE | VOLUMEMODE*
            o | Bound | v | 1Gi | RWO,RWX | fast | <unset> | 10m | Block
            o | Pending |  |  |  |  | <unset> | 10m | <unset>
        "#]],
    );
    let binding = object(
        json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "ann"}, {"kind": "ServiceAccount", "name": "d", "namespace": "n"}, {"kind": "Group", "name": "g"}]}),
    );
    check(
        &of_builtin("rbac.authorization.k8s.io", "RoleBinding"),
        &[binding],
        expect![[r#"
        NAME | ROLE | AGE | USERS* | GROUPS* | SERVICEACCOUNTS*
        o | Role/r | 10m | ann | g | n/d
    "#]],
    );
    check(
        &of_builtin("rbac.authorization.k8s.io", "Role"),
        &[object(json!({}))],
        expect![[r#"
        NAME | CREATED AT
        o | 2026-01-01T00:00:00Z
    "#]],
    );
    check(
        &of_builtin("", "ConfigMap"),
        &[object(json!({"data": {"a": "1"}, "binaryData": {"b": ""}}))],
        expect![[r#"
            NAME | DATA | AGE
            o | 2 | 10m
        "#]],
    );
}

#[test]
fn custom_kinds_show_what_their_definition_says() {
    let version = json!({"additionalPrinterColumns": [
        {"name": "Queue", "jsonPath": ".spec.queue", "type": "string"},
        {"name": "Admitted", "jsonPath": ".status.conditions[?(@.type=='Admitted')].status", "type": "string"},
        {"name": "Pending", "jsonPath": ".status.pending", "type": "integer"},
        {"name": "Whole", "jsonPath": ".status", "type": "string", "priority": 1},
        {"name": "Since", "jsonPath": ".metadata.creationTimestamp", "type": "date"},
        {"name": "Wrong", "jsonPath": ".spec.queue", "type": "date"},
        {"name": "Flag", "jsonPath": ".spec.queue", "type": "boolean"},
    ]});
    let objects = [
        json!({"metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"queue": "q"},
            "status": {"pending": 3, "conditions": [{"type": "Admitted", "status": "True"}]}}),
        json!({"metadata": {"name": "b"}}),
    ];
    check(
        &of_custom(&version),
        &objects,
        expect![[r#"
        NAME | QUEUE | ADMITTED | PENDING | WHOLE* | SINCE | WRONG | FLAG
        a | q | True | 3 | {"conditions":[{"status":"True","type":"Admitted"}],"pending":3} | 10m | <invalid> | null
        b | null | null | null | null | null | null | null
    "#]],
    );
    check(
        &of_custom(&json!({})),
        &objects,
        expect![[r#"
        NAME | AGE
        a | 10m
        b | <unknown>
    "#]],
    );
}
