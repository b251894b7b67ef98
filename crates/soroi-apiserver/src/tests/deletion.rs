//! What `deletion` promises, as tests.

use expect_test::expect;

use super::check;

#[test]
fn preconditions_guard_a_deletion() {
    check(
        "
        POST configmaps {metadata: {name: a}}
        DELETE configmaps/a {preconditions: {uid: other}}
        DELETE configmaps/a {preconditions: {resourceVersion: '2'}}
        DELETE configmaps/a {propagationPolicy: Sideways}
        DELETE configmaps/a {dryRun: [All]}
        DELETE configmaps/a | .details
        DELETE configmaps/a
        ",
        expect![[r#"
            POST configmaps {metadata: {name: a}}
                201 ConfigMap a
            DELETE configmaps/a {preconditions: {uid: other}}
                409 Conflict Operation cannot be fulfilled on configmaps "a": the UID in the precondition (other) does not match the UID in record (8621a03f-e0bb-4b7b-8e1f-7555983aa92f). The object might have been deleted and then recreated
            DELETE configmaps/a {preconditions: {resourceVersion: '2'}}
                409 Conflict Operation cannot be fulfilled on configmaps "a": the ResourceVersion in the precondition (2) does not match the ResourceVersion in record (8). The object might have been modified
            DELETE configmaps/a {propagationPolicy: Sideways}
                422 Invalid DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Sideways": supported values: "Background", "Foreground", "Orphan", "nil"
            DELETE configmaps/a {dryRun: [All]}
                200 Success
            DELETE configmaps/a | .details
                200 Success {"kind":"configmaps","name":"a","uid":"8621a03f-e0bb-4b7b-8e1f-7555983aa92f"}
            DELETE configmaps/a
                404 NotFound configmaps "a" not found
        "#]],
    );
}

#[test]
fn finalizers_hold_an_object() {
    check(
        "
        POST configmaps {metadata: {name: a, finalizers: [example.com/f]}}
        DELETE configmaps/a | .metadata.deletionTimestamp .metadata.deletionGracePeriodSeconds
        SLEEP 5
        DELETE configmaps/a | .metadata.deletionTimestamp
        PATCH:merge configmaps/a {metadata: {finalizers: [example.com/f, example.com/g]}}
        PATCH:merge configmaps/a {metadata: {deletionTimestamp: null}} | .metadata.deletionTimestamp
        PATCH:merge configmaps/a {metadata: {finalizers: null}} | .metadata.finalizers
        GET configmaps/a
        # What is left to the garbage collector is said in finalizers.
        POST configmaps {metadata: {name: b}}
        DELETE configmaps/b {propagationPolicy: Foreground} | .metadata.finalizers
        DELETE configmaps/b?propagationPolicy=Orphan | .metadata.finalizers
        DELETE configmaps/b {propagationPolicy: Background}
        ",
        expect![[r#"
            POST configmaps {metadata: {name: a, finalizers: [example.com/f]}}
                201 ConfigMap a
            DELETE configmaps/a | .metadata.deletionTimestamp .metadata.deletionGracePeriodSeconds
                200 ConfigMap a "2026-01-01T00:00:00Z" 0
            DELETE configmaps/a | .metadata.deletionTimestamp
                200 ConfigMap a "2026-01-01T00:00:00Z"
            PATCH:merge configmaps/a {metadata: {finalizers: [example.com/f, example.com/g]}}
                422 Invalid ConfigMap "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/g"}
            PATCH:merge configmaps/a {metadata: {deletionTimestamp: null}} | .metadata.deletionTimestamp
                200 ConfigMap a "2026-01-01T00:00:00Z"
            PATCH:merge configmaps/a {metadata: {finalizers: null}} | .metadata.finalizers
                200 ConfigMap a null
            GET configmaps/a
                404 NotFound configmaps "a" not found
            POST configmaps {metadata: {name: b}}
                201 ConfigMap b
            DELETE configmaps/b {propagationPolicy: Foreground} | .metadata.finalizers
                200 ConfigMap b ["foregroundDeletion"]
            DELETE configmaps/b?propagationPolicy=Orphan | .metadata.finalizers
                200 ConfigMap b ["orphan"]
            DELETE configmaps/b {propagationPolicy: Background}
                200 Success
        "#]],
    );
}

#[test]
fn a_bound_pod_waits_for_its_kubelet() {
    check(
        "
        POST pods {metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}
        DELETE pods/a
        GET pods/a
        POST pods {metadata: {name: b}, spec: {nodeName: n1, terminationGracePeriodSeconds: 20, containers: [{name: c, image: i}]}}
        DELETE pods/b | .metadata.deletionTimestamp .metadata.deletionGracePeriodSeconds .metadata.generation
        DELETE pods/b?gracePeriodSeconds=60 | .metadata.deletionGracePeriodSeconds
        DELETE pods/b {gracePeriodSeconds: 5} | .metadata.deletionTimestamp .metadata.deletionGracePeriodSeconds
        PATCH:merge pods/b {metadata: {labels: {still: here}}} | .metadata.labels
        DELETE pods/b {gracePeriodSeconds: 0}
        GET pods/b
        # A pod that has ended goes at once.
        POST pods {metadata: {name: c}, spec: {nodeName: n1, containers: [{name: c, image: i}]}}
        PATCH:merge pods/c/status {status: {phase: Failed}}
        DELETE pods/c
        GET pods/c
        # Finalizers hold it even when its kubelet is done.
        POST pods {metadata: {name: d, finalizers: [example.com/f]}, spec: {nodeName: n1, containers: [{name: c, image: i}]}}
        DELETE pods/d {gracePeriodSeconds: 0} | .metadata.deletionGracePeriodSeconds
        PATCH:merge pods/d {metadata: {finalizers: null}}
        GET pods/d
        ",
        expect![[r#"
            POST pods {metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}
                201 Pod a
            DELETE pods/a
                200 Pod a
            GET pods/a
                404 NotFound pods "a" not found
            POST pods {metadata: {name: b}, spec: {nodeName: n1, terminationGracePeriodSeconds: 20, containers: [{name: c, image: i}]}}
                201 Pod b
            DELETE pods/b | .metadata.deletionTimestamp .metadata.deletionGracePeriodSeconds .metadata.generation
                200 Pod b "2026-01-01T00:00:20Z" 20 2
            DELETE pods/b?gracePeriodSeconds=60 | .metadata.deletionGracePeriodSeconds
                200 Pod b 20
            DELETE pods/b {gracePeriodSeconds: 5} | .metadata.deletionTimestamp .metadata.deletionGracePeriodSeconds
                200 Pod b "2026-01-01T00:00:05Z" 5
            PATCH:merge pods/b {metadata: {labels: {still: here}}} | .metadata.labels
                200 Pod b {"still":"here"}
            DELETE pods/b {gracePeriodSeconds: 0}
                200 Pod b
            GET pods/b
                404 NotFound pods "b" not found
            POST pods {metadata: {name: c}, spec: {nodeName: n1, containers: [{name: c, image: i}]}}
                201 Pod c
            PATCH:merge pods/c/status {status: {phase: Failed}}
                200 Pod c
            DELETE pods/c
                200 Pod c
            GET pods/c
                404 NotFound pods "c" not found
            POST pods {metadata: {name: d, finalizers: [example.com/f]}, spec: {nodeName: n1, containers: [{name: c, image: i}]}}
                201 Pod d
            DELETE pods/d {gracePeriodSeconds: 0} | .metadata.deletionGracePeriodSeconds
                200 Pod d 0
            PATCH:merge pods/d {metadata: {finalizers: null}}
                200 Pod d
            GET pods/d
                404 NotFound pods "d" not found
        "#]],
    );
}

#[test]
fn a_namespace_goes_with_what_is_in_it() {
    check(
        "
        POST namespaces {metadata: {name: team}} | .status .spec .metadata.labels
        POST /api/v1/namespaces/team/configmaps {metadata: {name: a}}
        POST /api/v1/namespaces/team/configmaps {metadata: {name: held, finalizers: [example.com/f]}}
        POST /api/v1/namespaces/team/pods {metadata: {name: p}, spec: {nodeName: n1, containers: [{name: c, image: i}]}}
        DELETE namespaces/team | .status.phase
        GET /api/v1/namespaces/team/configmaps
        POST /api/v1/namespaces/team/configmaps {metadata: {name: late}}
        PATCH:merge /api/v1/namespaces/team/configmaps/held {metadata: {finalizers: null}}
        GET namespaces/team | .status.phase
        DELETE /api/v1/namespaces/team/pods/p {gracePeriodSeconds: 0}
        GET namespaces/team
        DELETE namespaces/default
        GET namespaces
        POST namespaces {metadata: {name: empty}}
        DELETE namespaces/empty
        GET namespaces/empty
        ",
        expect![[r#"
            POST namespaces {metadata: {name: team}} | .status .spec .metadata.labels
                201 Namespace team {"phase":"Active"} {"finalizers":["kubernetes"]} {"kubernetes.io/metadata.name":"team"}
            POST /api/v1/namespaces/team/configmaps {metadata: {name: a}}
                201 ConfigMap a
            POST /api/v1/namespaces/team/configmaps {metadata: {name: held, finalizers: [example.com/f]}}
                201 ConfigMap held
            POST /api/v1/namespaces/team/pods {metadata: {name: p}, spec: {nodeName: n1, containers: [{name: c, image: i}]}}
                201 Pod p
            DELETE namespaces/team | .status.phase
                200 Namespace team "Terminating"
            GET /api/v1/namespaces/team/configmaps
                200 ConfigMapList [held]
            POST /api/v1/namespaces/team/configmaps {metadata: {name: late}}
                403 Forbidden configmaps "late" is forbidden: unable to create new content in namespace team because it is being terminated
            PATCH:merge /api/v1/namespaces/team/configmaps/held {metadata: {finalizers: null}}
                200 ConfigMap held
            GET namespaces/team | .status.phase
                200 Namespace team "Terminating"
            DELETE /api/v1/namespaces/team/pods/p {gracePeriodSeconds: 0}
                200 Pod p
            GET namespaces/team
                404 NotFound namespaces "team" not found
            DELETE namespaces/default
                403 Forbidden namespaces "default" is forbidden: this namespace may not be deleted
            GET namespaces
                200 NamespaceList [default kube-node-lease kube-public kube-system]
            POST namespaces {metadata: {name: empty}}
                201 Namespace empty
            DELETE namespaces/empty
                200 Success
            GET namespaces/empty
                404 NotFound namespaces "empty" not found
        "#]],
    );
}
