//! What `apply` promises, as tests.

use expect_test::expect;

use super::check;

#[test]
fn an_apply_creates_changes_and_forgets() {
    check(
        "
        PATCH:apply configmaps/a {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v, l: w}}
        PATCH:apply configmaps/a?fieldManager=one {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v, l: w}} | .data .metadata.managedFields
        # The same again is no change.
        PATCH:apply configmaps/a?fieldManager=one {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v, l: w}} | .metadata.resourceVersion
        # What is no longer named goes away.
        PATCH:apply configmaps/a?fieldManager=one {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}} | .data
        # Two managers that agree share a field; one that differs collides.
        PATCH:apply configmaps/a?fieldManager=two {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v, m: x}} | .data
        PATCH:apply configmaps/a?fieldManager=two {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: z}} | .details
        PATCH:apply configmaps/a?fieldManager=two&force=true {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: z}} | .data
        PATCH:apply configmaps/a?fieldManager=one {apiVersion: v1, kind: ConfigMap, metadata: {name: a}} | .data
        # An update takes the fields that it changes.
        PATCH:merge configmaps/a {data: {k: why}} | .metadata.managedFields
        PATCH:apply configmaps/a?fieldManager=one {apiVersion: v1, kind: Secret, metadata: {name: a}}
        PATCH:apply configmaps/a?fieldManager=one {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}
        PATCH:apply configmaps/a?fieldManager=one {apiVersion: v1, kind: ConfigMap, metadata: {name: a, managedFields: [{manager: x}]}}
        ",
        expect![[r#"
            PATCH:apply configmaps/a {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v, l: w}}
                422 Invalid PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch
            PATCH:apply configmaps/a?fieldManager=one {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v, l: w}} | .data .metadata.managedFields
                201 ConfigMap a {"k":"v","l":"w"} [{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:k":{},"f:l":{}}},"manager":"one","operation":"Apply","time":"2026-01-01T00:00:00Z"}]
            PATCH:apply configmaps/a?fieldManager=one {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v, l: w}} | .metadata.resourceVersion
                200 ConfigMap a "8"
            PATCH:apply configmaps/a?fieldManager=one {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}} | .data
                200 ConfigMap a {"k":"v"}
            PATCH:apply configmaps/a?fieldManager=two {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v, m: x}} | .data
                200 ConfigMap a {"k":"v","m":"x"}
            PATCH:apply configmaps/a?fieldManager=two {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: z}} | .details
                409 Conflict Apply failed with 1 conflict: conflict with "one": .data.k {"causes":[{"field":".data.k","message":"conflict with \"one\"","reason":"FieldManagerConflict"}]}
            PATCH:apply configmaps/a?fieldManager=two&force=true {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: z}} | .data
                200 ConfigMap a {"k":"z"}
            PATCH:apply configmaps/a?fieldManager=one {apiVersion: v1, kind: ConfigMap, metadata: {name: a}} | .data
                200 ConfigMap a {"k":"z"}
            PATCH:merge configmaps/a {data: {k: why}} | .metadata.managedFields
                200 ConfigMap a null
            PATCH:apply configmaps/a?fieldManager=one {apiVersion: v1, kind: Secret, metadata: {name: a}}
                400 BadRequest invalid object type: v1, Kind=Secret, expected v1, Kind=ConfigMap
            PATCH:apply configmaps/a?fieldManager=one {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}
                400 BadRequest the name of the object (b) does not match the name on the URL (a)
            PATCH:apply configmaps/a?fieldManager=one {apiVersion: v1, kind: ConfigMap, metadata: {name: a, managedFields: [{manager: x}]}}
                400 BadRequest metadata.managedFields must be nil
        "#]],
    );
}

#[test]
fn an_apply_tells_the_items_of_lists_apart() {
    check(
        "
        PATCH:apply pods/a?fieldManager=one {apiVersion: v1, kind: Pod, metadata: {name: a, finalizers: [x.y/a]}, spec: {containers: [{name: c, image: i, ports: [{containerPort: 80}]}]}} | .spec.containers.0.image
        PATCH:apply pods/a?fieldManager=two {apiVersion: v1, kind: Pod, metadata: {name: a, finalizers: [x.y/b]}, spec: {containers: [{name: c, image: i}]}} | .metadata.finalizers
        PATCH:apply pods/a?fieldManager=two {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: j}]}}
        PATCH:apply pods/a?fieldManager=one {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, ports: [{containerPort: 80}]}]}} | .spec.containers.0.image .metadata.finalizers
        PATCH:apply pods/a/status?fieldManager=kubelet {apiVersion: v1, kind: Pod, metadata: {name: a}, status: {conditions: [{type: Ready, status: 'True'}, {type: PodScheduled, status: 'True'}]}} | .status.conditions
        PATCH:apply pods/a/status?fieldManager=kubelet {apiVersion: v1, kind: Pod, metadata: {name: a}, status: {conditions: [{type: Ready, status: 'False'}]}} | .status.conditions
        PATCH:apply pods/zzz/status?fieldManager=kubelet {apiVersion: v1, kind: Pod, metadata: {name: zzz}, status: {phase: Running}}
        ",
        expect![[r#"
            PATCH:apply pods/a?fieldManager=one {apiVersion: v1, kind: Pod, metadata: {name: a, finalizers: [x.y/a]}, spec: {containers: [{name: c, image: i, ports: [{containerPort: 80}]}]}} | .spec.containers.0.image
                201 Pod a "i"
            PATCH:apply pods/a?fieldManager=two {apiVersion: v1, kind: Pod, metadata: {name: a, finalizers: [x.y/b]}, spec: {containers: [{name: c, image: i}]}} | .metadata.finalizers
                200 Pod a ["x.y/a","x.y/b"]
            PATCH:apply pods/a?fieldManager=two {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: j}]}}
                409 Conflict Apply failed with 1 conflict: conflict with "one": .spec.containers[name="c"].image
            PATCH:apply pods/a?fieldManager=one {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, ports: [{containerPort: 80}]}]}} | .spec.containers.0.image .metadata.finalizers
                200 Pod a "i" ["x.y/b"]
            PATCH:apply pods/a/status?fieldManager=kubelet {apiVersion: v1, kind: Pod, metadata: {name: a}, status: {conditions: [{type: Ready, status: 'True'}, {type: PodScheduled, status: 'True'}]}} | .status.conditions
                200 Pod a [{"status":"True","type":"Ready"},{"status":"True","type":"PodScheduled"}]
            PATCH:apply pods/a/status?fieldManager=kubelet {apiVersion: v1, kind: Pod, metadata: {name: a}, status: {conditions: [{type: Ready, status: 'False'}]}} | .status.conditions
                200 Pod a [{"status":"False","type":"Ready"}]
            PATCH:apply pods/zzz/status?fieldManager=kubelet {apiVersion: v1, kind: Pod, metadata: {name: zzz}, status: {phase: Running}}
                404 NotFound pods "zzz" not found
        "#]],
    );
}
