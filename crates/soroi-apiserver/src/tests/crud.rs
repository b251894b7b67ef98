//! What `crud` promises, as tests.

use expect_test::expect;

use super::check;

#[test]
fn objects_are_created_read_and_replaced() {
    check(
        "
        POST configmaps {metadata: {name: a, labels: {x: '1'}}, data: {k: v}} | .metadata.resourceVersion .metadata.uid .metadata.creationTimestamp
        POST configmaps {metadata: {name: a}}
        POST configmaps {metadata: {generateName: b-}} | .metadata.generateName
        POST configmaps {metadata: {name: Not_Good}}
        POST configmaps {metadata: {}}
        POST configmaps {metadata: {name: a, namespace: other}}
        POST configmaps {kind: Pod, apiVersion: v1, metadata: {name: a}}
        POST configmaps {apiVersion: v2, metadata: {name: a}}
        POST configmaps []
        POST /api/v1/namespaces/nowhere/configmaps {metadata: {name: a}}
        POST configmaps {metadata: {name: c, resourceVersion: '5'}}
        GET configmaps/a | .data
        GET configmaps/zzz
        GET /api/v1/nothings
        PUT configmaps/a {metadata: {name: b}}
        PUT configmaps/zzz {metadata: {name: zzz}}
        PUT configmaps/a {metadata: {name: a, resourceVersion: '1'}, data: {k: w}}
        PUT configmaps/a {metadata: {name: a, uid: other}, data: {k: w}}
        PUT configmaps/a {metadata: {name: a}, data: {k: w}} | .data .metadata.labels .metadata.resourceVersion
        # A change of nothing is no change.
        PUT configmaps/a {metadata: {name: a}, data: {k: w}} | .metadata.resourceVersion
        POST configmaps?dryRun=All {metadata: {name: trial}} | .metadata.resourceVersion
        GET configmaps/trial
        POST configmaps?dryRun=Some {metadata: {name: trial}}
        ",
        expect![[r#"
            POST configmaps {metadata: {name: a, labels: {x: '1'}}, data: {k: v}} | .metadata.resourceVersion .metadata.uid .metadata.creationTimestamp
                201 ConfigMap a "8" "8621a03f-e0bb-4b7b-8e1f-7555983aa92f" "2026-01-01T00:00:00Z"
            POST configmaps {metadata: {name: a}}
                409 AlreadyExists configmaps "a" already exists
            POST configmaps {metadata: {generateName: b-}} | .metadata.generateName
                201 ConfigMap b-4mxxj "b-"
            POST configmaps {metadata: {name: Not_Good}}
                422 Invalid ConfigMap "Not_Good" is invalid: metadata.name: Invalid value: "Not_Good": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            POST configmaps {metadata: {}}
                422 Invalid ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required
            POST configmaps {metadata: {name: a, namespace: other}}
                400 BadRequest the namespace of the provided object does not match the namespace sent on the request
            POST configmaps {kind: Pod, apiVersion: v1, metadata: {name: a}}
                400 BadRequest Pod in version "v1" cannot be handled as a ConfigMap: no kind "Pod" is registered for version "v1"
            POST configmaps {apiVersion: v2, metadata: {name: a}}
                400 BadRequest the API version in the data (v2) does not match the expected API version (v1)
            POST configmaps []
                400 BadRequest json: cannot unmarshal array into Go value of type struct
            POST /api/v1/namespaces/nowhere/configmaps {metadata: {name: a}}
                404 NotFound namespaces "nowhere" not found
            POST configmaps {metadata: {name: c, resourceVersion: '5'}}
                500  resourceVersion should not be set on objects to be created
            GET configmaps/a | .data
                200 ConfigMap a {"k":"v"}
            GET configmaps/zzz
                404 NotFound configmaps "zzz" not found
            GET /api/v1/nothings
                404 NotFound the server could not find the requested resource
            PUT configmaps/a {metadata: {name: b}}
                400 BadRequest the name of the object (b) does not match the name on the URL (a)
            PUT configmaps/zzz {metadata: {name: zzz}}
                404 NotFound configmaps "zzz" not found
            PUT configmaps/a {metadata: {name: a, resourceVersion: '1'}, data: {k: w}}
                409 Conflict Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again
            PUT configmaps/a {metadata: {name: a, uid: other}, data: {k: w}}
                409 Conflict Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, Key: /registry/configmaps/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other, UID in object meta: 8621a03f-e0bb-4b7b-8e1f-7555983aa92f
            PUT configmaps/a {metadata: {name: a}, data: {k: w}} | .data .metadata.labels .metadata.resourceVersion
                200 ConfigMap a {"k":"w"} null "10"
            PUT configmaps/a {metadata: {name: a}, data: {k: w}} | .metadata.resourceVersion
                200 ConfigMap a "10"
            POST configmaps?dryRun=All {metadata: {name: trial}} | .metadata.resourceVersion
                201 ConfigMap trial null
            GET configmaps/trial
                404 NotFound configmaps "trial" not found
            POST configmaps?dryRun=Some {metadata: {name: trial}}
                422 Invalid CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: "Some": supported values: "All"
        "#]],
    );
}

#[test]
fn unknown_fields_are_refused_warned_about_or_ignored() {
    check(
        "
        POST pods?fieldValidation=Strict {metadata: {name: a}, spec: {foo: 1, containers: [{name: c, image: i, bar: 2}]}}
        POST pods {metadata: {name: a}, spec: {foo: 1, containers: [{name: c, image: i}]}} | .spec.foo
        POST pods?fieldValidation=Ignore {metadata: {name: b}, spec: {foo: 1, containers: [{name: c, image: i}]}}
        POST pods?fieldValidation=Maybe {metadata: {name: c}}
        POST pods {metadata: {name: c}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: lots}}}]}}
        POST pods {metadata: {name: c}, spec: {terminationGracePeriodSeconds: soon}}
        POST configmaps {metadata: {name: zzz}}
        PATCH:merge configmaps/zzz?fieldValidation=Strict {dta: {a: b}}
        ",
        expect![[r#"
            POST pods?fieldValidation=Strict {metadata: {name: a}, spec: {foo: 1, containers: [{name: c, image: i, bar: 2}]}}
                400 BadRequest Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.containers[0].bar", unknown field "spec.foo"
            POST pods {metadata: {name: a}, spec: {foo: 1, containers: [{name: c, image: i}]}} | .spec.foo
                201 Pod a null
                299 - "unknown field \"spec.foo\""
            POST pods?fieldValidation=Ignore {metadata: {name: b}, spec: {foo: 1, containers: [{name: c, image: i}]}}
                201 Pod b
            POST pods?fieldValidation=Maybe {metadata: {name: c}}
                422 Invalid CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Maybe": supported values: "", "Ignore", "Strict", "Warn"
            POST pods {metadata: {name: c}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: lots}}}]}}
                400 BadRequest Pod in version "v1" cannot be handled as a Pod: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
            POST pods {metadata: {name: c}, spec: {terminationGracePeriodSeconds: soon}}
                400 BadRequest Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal string into Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64
            POST configmaps {metadata: {name: zzz}}
                201 ConfigMap zzz
            PATCH:merge configmaps/zzz?fieldValidation=Strict {dta: {a: b}}
                422 Invalid  "" is invalid: patch: Invalid value: "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"name\":\"zzz\",\"namespace\":\"default\",\"resourceVersion\":\"10\",\"uid\":\"7d29825c-7552-4255-83cf-17102b7f7f86\"}}": strict decoding error: unknown field "dta"
        "#]],
    );
}

#[test]
fn lists_are_narrowed_and_paged() {
    check(
        "
        POST configmaps {metadata: {name: a, labels: {t: x}}}
        POST configmaps {metadata: {name: b, labels: {t: z}}}
        POST configmaps {metadata: {name: c, labels: {t: x}}}
        POST /api/v1/namespaces/kube-system/configmaps {metadata: {name: a}}
        GET configmaps | .metadata
        GET /api/v1/configmaps
        GET configmaps?labelSelector=t%3Dx
        GET configmaps?labelSelector=t+notin+(x)
        GET configmaps?labelSelector=t%3D%3D%3Dx
        GET configmaps?fieldSelector=metadata.name%3Db
        GET /api/v1/configmaps?fieldSelector=metadata.name%3Da,metadata.namespace!%3Ddefault
        GET configmaps?fieldSelector=data.k%3Dv
        GET pods?fieldSelector=spec.foo%3Dv
        GET jobs?fieldSelector=spec.foo%3Dv
        GET configmaps?limit=2 | .metadata.remainingItemCount
        GET configmaps?limit=2&continue=31300a64656661756c740a62
        GET configmaps?continue=nonsense
        GET configmaps?limit=x
        GET configmaps?resourceVersion=9999&resourceVersionMatch=NotOlderThan
        GET configmaps?resourceVersionMatch=Exact
        # The list as it was after the first two.
        GET configmaps?resourceVersion=9&resourceVersionMatch=Exact | .metadata.resourceVersion
        DELETE configmaps?labelSelector=t%3Dx
        GET configmaps
        ",
        expect![[r#"
            POST configmaps {metadata: {name: a, labels: {t: x}}}
                201 ConfigMap a
            POST configmaps {metadata: {name: b, labels: {t: z}}}
                201 ConfigMap b
            POST configmaps {metadata: {name: c, labels: {t: x}}}
                201 ConfigMap c
            POST /api/v1/namespaces/kube-system/configmaps {metadata: {name: a}}
                201 ConfigMap a
            GET configmaps | .metadata
                200 ConfigMapList [a b c] {"resourceVersion":"11"}
            GET /api/v1/configmaps
                200 ConfigMapList [a b c a]
            GET configmaps?labelSelector=t%3Dx
                200 ConfigMapList [a c]
            GET configmaps?labelSelector=t+notin+(x)
                200 ConfigMapList [b]
            GET configmaps?labelSelector=t%3D%3D%3Dx
                400 BadRequest unable to parse requirement: found '=', expected: identifier
            GET configmaps?fieldSelector=metadata.name%3Db
                200 ConfigMapList [b]
            GET /api/v1/configmaps?fieldSelector=metadata.name%3Da,metadata.namespace!%3Ddefault
                200 ConfigMapList [a]
            GET configmaps?fieldSelector=data.k%3Dv
                400 BadRequest "data.k" is not a known field selector: only "metadata.name", "metadata.namespace"
            GET pods?fieldSelector=spec.foo%3Dv
                400 BadRequest field label not supported: spec.foo
            GET jobs?fieldSelector=spec.foo%3Dv
                400 BadRequest field label "spec.foo" not supported for Job
            GET configmaps?limit=2 | .metadata.remainingItemCount
                200 ConfigMapList [a b] 1
            GET configmaps?limit=2&continue=31300a64656661756c740a62
                200 ConfigMapList [c]
            GET configmaps?continue=nonsense
                400 BadRequest continue key is not valid: encoding
            GET configmaps?limit=x
                400 BadRequest strconv.ParseInt: parsing "x": invalid syntax
            GET configmaps?resourceVersion=9999&resourceVersionMatch=NotOlderThan
                504 Timeout Timeout: Too large resource version: 9999, current: 11
            GET configmaps?resourceVersionMatch=Exact
                422 Invalid ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided
            GET configmaps?resourceVersion=9&resourceVersionMatch=Exact | .metadata.resourceVersion
                200 ConfigMapList [a b] "9"
            DELETE configmaps?labelSelector=t%3Dx
                200 ConfigMapList [a c]
            GET configmaps
                200 ConfigMapList [b]
        "#]],
    );
}

#[test]
fn patches_change_objects() {
    check(
        r#"
        POST configmaps {metadata: {name: a}, data: {k: v, l: w}}
        PATCH:merge configmaps/a {data: {k: null, m: x}} | .data
        PATCH:json configmaps/a [{op: test, path: /data/m, value: x}, {op: replace, path: /data/m, value: why}] | .data
        PATCH:json configmaps/a [{op: test, path: /data/m, value: x}, {op: remove, path: /data/l}]
        PATCH:json configmaps/a {op: test}
        PATCH:merge configmaps/a [1]
        PATCH:strategic configmaps/a {data: {z: z}, metadata: {finalizers: [example.com/f]}} | .data .metadata.finalizers
        PATCH configmaps/a {}
        PATCH:merge configmaps/zzz {}
        PATCH:merge configmaps/a {metadata: {resourceVersion: '3'}}
        PATCH:merge configmaps/a {metadata: {name: b}} | .metadata.name
        PATCH:merge configmaps/a {metadata: {uid: other}}
        "#,
        expect![[r#"
            POST configmaps {metadata: {name: a}, data: {k: v, l: w}}
                201 ConfigMap a
            PATCH:merge configmaps/a {data: {k: null, m: x}} | .data
                200 ConfigMap a {"l":"w","m":"x"}
            PATCH:json configmaps/a [{op: test, path: /data/m, value: x}, {op: replace, path: /data/m, value: why}] | .data
                200 ConfigMap a {"l":"w","m":"why"}
            PATCH:json configmaps/a [{op: test, path: /data/m, value: x}, {op: remove, path: /data/l}]
                422 Invalid the server rejected our request due to an error in our request
            PATCH:json configmaps/a {op: test}
                400 BadRequest error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp
            PATCH:merge configmaps/a [1]
                400 BadRequest error decoding patch: json: cannot unmarshal into Go value of type map[string]interface {}
            PATCH:strategic configmaps/a {data: {z: z}, metadata: {finalizers: [example.com/f]}} | .data .metadata.finalizers
                200 ConfigMap a {"l":"w","m":"why","z":"z"} ["example.com/f"]
            PATCH configmaps/a {}
                415 UnsupportedMediaType the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml
            PATCH:merge configmaps/zzz {}
                404 NotFound configmaps "zzz" not found
            PATCH:merge configmaps/a {metadata: {resourceVersion: '3'}}
                409 Conflict Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again
            PATCH:merge configmaps/a {metadata: {name: b}} | .metadata.name
                400 BadRequest the name of the object (b) does not match the name on the URL (a) null
            PATCH:merge configmaps/a {metadata: {uid: other}}
                409 Conflict Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, Key: /registry/configmaps/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other, UID in object meta: 8621a03f-e0bb-4b7b-8e1f-7555983aa92f
        "#]],
    );
}
