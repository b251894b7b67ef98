//! What `pods` promises, as tests.

use expect_test::expect;

use super::check;

#[test]
fn a_new_pod_gets_what_its_author_left_out() {
    check(
        "
        POST pods {metadata: {name: a}, spec: {containers: [{name: c, image: i, resources: {limits: {cpu: 0.5, example.com/gpu: 1}}}]}} | .spec .status .metadata.generation
        POST pods {metadata: {name: b}, spec: {hostNetwork: true, schedulingGates: [{name: example.com/wait}], containers: [{name: c, image: 'i:1', ports: [{containerPort: 80}]}]}} | .spec.containers.0.imagePullPolicy .spec.containers.0.ports .status
        POST pods {metadata: {name: c}, spec: {containers: [{name: c, image: i, resources: {limits: {cpu: 1, memory: 1Gi}}}]}} | .status.qosClass
        ",
        expect![[r#"
            POST pods {metadata: {name: a}, spec: {containers: [{name: c, image: i, resources: {limits: {cpu: 0.5, example.com/gpu: 1}}}]}} | .spec .status .metadata.generation
                201 Pod a {"containers":[{"image":"i","imagePullPolicy":"Always","name":"c","resources":{"limits":{"cpu":"500m","example.com/gpu":"1"},"requests":{"cpu":"500m","example.com/gpu":"1"}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority","priority":0,"restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"serviceAccount":"default","serviceAccountName":"default","terminationGracePeriodSeconds":30,"tolerations":[{"effect":"NoExecute","key":"node.kubernetes.io/not-ready","operator":"Exists","tolerationSeconds":300},{"effect":"NoExecute","key":"node.kubernetes.io/unreachable","operator":"Exists","tolerationSeconds":300}]} {"phase":"Pending","qosClass":"Burstable"} 1
            POST pods {metadata: {name: b}, spec: {hostNetwork: true, schedulingGates: [{name: example.com/wait}], containers: [{name: c, image: 'i:1', ports: [{containerPort: 80}]}]}} | .spec.containers.0.imagePullPolicy .spec.containers.0.ports .status
                201 Pod b "IfNotPresent" [{"containerPort":80,"hostPort":80,"protocol":"TCP"}] {"conditions":[{"message":"Scheduling is blocked due to non-empty scheduling gates","reason":"SchedulingGated","status":"False","type":"PodScheduled"}],"phase":"Pending","qosClass":"BestEffort"}
            POST pods {metadata: {name: c}, spec: {containers: [{name: c, image: i, resources: {limits: {cpu: 1, memory: 1Gi}}}]}} | .status.qosClass
                201 Pod c "Guaranteed"
        "#]],
    );
}

#[test]
fn wrong_pods_are_refused() {
    check(
        "
        POST pods {metadata: {name: a}}
        POST pods {metadata: {name: a}, spec: {containers: []}}
        POST pods {metadata: {name: a}, spec: {restartPolicy: Sometimes, containers: [{name: C, image: i}, {name: d}, {name: d, image: i}]}}
        POST pods {metadata: {name: a}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 2, gpu: 1}, limits: {cpu: 1, memory: -1}}}]}}
        POST pods {metadata: {name: a}, spec: {containers: [{name: c, image: i, resources: {requests: {example.com/gpu: 1.5}, limits: {example.com/gpu: 2}}}]}}
        POST pods {metadata: {name: a}, spec: {containers: [{name: c, image: i, resources: {requests: {example.com/gpu: 1}}}]}}
        POST pods {metadata: {name: a}, spec: {nodeName: n1, schedulingGates: [{name: g}, {name: g}], containers: [{name: c, image: i}]}}
        POST pods {metadata: {name: a}, spec: {tolerations: [{operator: Equal}, {key: k, operator: Exists, value: v}, {key: k, effect: Never}], containers: [{name: c, image: i}]}}
        POST pods {metadata: {name: a}, spec: {containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /v}]}]}}
        POST pods {metadata: {name: a}, spec: {priorityClassName: none, containers: [{name: c, image: i}]}}
        POST pods {metadata: {name: a}, spec: {runtimeClassName: none, containers: [{name: c, image: i}]}}
        POST pods {metadata: {name: a}, spec: {priority: 5, containers: [{name: c, image: i}]}}
        ",
        expect![[r#"
            POST pods {metadata: {name: a}}
                422 Invalid Pod "a" is invalid: spec.containers: Required value
            POST pods {metadata: {name: a}, spec: {containers: []}}
                422 Invalid Pod "a" is invalid: spec.containers: Required value
            POST pods {metadata: {name: a}, spec: {restartPolicy: Sometimes, containers: [{name: C, image: i}, {name: d}, {name: d, image: i}]}}
                422 Invalid Pod "a" is invalid: [spec.containers[0].name: Invalid value: "C": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?'), spec.containers[1].image: Required value, spec.containers[2].name: Duplicate value: "d", spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"]
            POST pods {metadata: {name: a}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 2, gpu: 1}, limits: {cpu: 1, memory: -1}}}]}}
                422 Invalid Pod "a" is invalid: [spec.containers[0].resources.limits[memory]: Invalid value: "-1": must be greater than or equal to 0, spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified, spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must be a standard resource for containers, spec.containers[0].resources.requests[memory]: Invalid value: "-1": must be greater than or equal to 0, spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1, spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources]
            POST pods {metadata: {name: a}, spec: {containers: [{name: c, image: i, resources: {requests: {example.com/gpu: 1.5}, limits: {example.com/gpu: 2}}}]}}
                422 Invalid Pod "a" is invalid: [spec.containers[0].resources.requests[example.com/gpu]: Invalid value: "1500m": must be an integer, spec.containers[0].resources.requests: Invalid value: "1500m": must be equal to example.com/gpu limit of 2]
            POST pods {metadata: {name: a}, spec: {containers: [{name: c, image: i, resources: {requests: {example.com/gpu: 1}}}]}}
                422 Invalid Pod "a" is invalid: spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources
            POST pods {metadata: {name: a}, spec: {nodeName: n1, schedulingGates: [{name: g}, {name: g}], containers: [{name: c, image: i}]}}
                422 Invalid Pod "a" is invalid: [spec.schedulingGates[1]: Duplicate value: "g", spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared]
            POST pods {metadata: {name: a}, spec: {tolerations: [{operator: Equal}, {key: k, operator: Exists, value: v}, {key: k, effect: Never}], containers: [{name: c, image: i}]}}
                422 Invalid Pod "a" is invalid: [spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which means "match all values and all keys", spec.tolerations[1].operator: Invalid value: {"key":"k","operator":"Exists","value":"v"}: value must be empty when `operator` is 'Exists', spec.tolerations[2].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"]
            POST pods {metadata: {name: a}, spec: {containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /v}]}]}}
                422 Invalid Pod "a" is invalid: spec.containers[0].volumeMounts[0].name: Not found: "v"
            POST pods {metadata: {name: a}, spec: {priorityClassName: none, containers: [{name: c, image: i}]}}
                403 Forbidden pods "a" is forbidden: no PriorityClass with name none was found
            POST pods {metadata: {name: a}, spec: {runtimeClassName: none, containers: [{name: c, image: i}]}}
                403 Forbidden pods "a" is forbidden: pod rejected: RuntimeClass "none" not found
            POST pods {metadata: {name: a}, spec: {priority: 5, containers: [{name: c, image: i}]}}
                403 Forbidden pods "a" is forbidden: the integer value of priority (5) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name
        "#]],
    );
}

#[test]
fn classes_and_ranges_shape_new_pods() {
    check(
        "
        POST priorityclasses {metadata: {name: high}, value: 100}
        POST priorityclasses {metadata: {name: usual}, value: 7, globalDefault: true, preemptionPolicy: Never}
        POST priorityclasses {metadata: {name: usual2}, value: 7, globalDefault: true}
        POST priorityclasses {metadata: {name: absurd}, value: 1000000001}
        PATCH:merge priorityclasses/high {value: 3}
        POST pods {metadata: {name: a}, spec: {priorityClassName: high, containers: [{name: c, image: i}]}} | .spec.priority .spec.preemptionPolicy
        POST pods {metadata: {name: b}, spec: {containers: [{name: c, image: i}]}} | .spec.priority .spec.priorityClassName .spec.preemptionPolicy
        POST runtimeclasses {metadata: {name: vm}, handler: vm, overhead: {podFixed: {memory: 64Mi}}, scheduling: {nodeSelector: {vm: 'yes'}, tolerations: [{key: vm, operator: Exists}]}}
        POST pods {metadata: {name: c}, spec: {runtimeClassName: vm, containers: [{name: c, image: i}]}} | .spec.overhead .spec.nodeSelector .spec.tolerations.2
        POST pods {metadata: {name: d}, spec: {runtimeClassName: vm, overhead: {memory: 1Mi}, containers: [{name: c, image: i}]}}
        POST pods {metadata: {name: d}, spec: {overhead: {memory: 1Mi}, containers: [{name: c, image: i}]}}
        POST limitranges {metadata: {name: l}, spec: {limits: [{type: Container, default: {cpu: 500m}, defaultRequest: {cpu: 100m}, max: {memory: 1Gi}}]}} | .spec.limits.0
        POST pods {metadata: {name: e}, spec: {containers: [{name: c, image: i}]}} | .spec.containers.0.resources .metadata.annotations
        POST pods {metadata: {name: f}, spec: {containers: [{name: c, image: i, resources: {limits: {memory: 2Gi}}}]}}
        ",
        expect![[r#"
            POST priorityclasses {metadata: {name: high}, value: 100}
                201 PriorityClass high
            POST priorityclasses {metadata: {name: usual}, value: 7, globalDefault: true, preemptionPolicy: Never}
                201 PriorityClass usual
            POST priorityclasses {metadata: {name: usual2}, value: 7, globalDefault: true}
                403 Forbidden priorityclasses.scheduling.k8s.io "usual2" is forbidden: PriorityClass usual already exists as default. Only one default can exist
            POST priorityclasses {metadata: {name: absurd}, value: 1000000001}
                422 Invalid PriorityClass.scheduling.k8s.io "absurd" is invalid: value: Forbidden: maximum allowed value of a user defined priority is 1000000000
            PATCH:merge priorityclasses/high {value: 3}
                422 Invalid PriorityClass.scheduling.k8s.io "high" is invalid: value: Forbidden: may not be changed in an update.
            POST pods {metadata: {name: a}, spec: {priorityClassName: high, containers: [{name: c, image: i}]}} | .spec.priority .spec.preemptionPolicy
                201 Pod a 100 "PreemptLowerPriority"
            POST pods {metadata: {name: b}, spec: {containers: [{name: c, image: i}]}} | .spec.priority .spec.priorityClassName .spec.preemptionPolicy
                201 Pod b 7 "usual" "Never"
            POST runtimeclasses {metadata: {name: vm}, handler: vm, overhead: {podFixed: {memory: 64Mi}}, scheduling: {nodeSelector: {vm: 'yes'}, tolerations: [{key: vm, operator: Exists}]}}
                201 RuntimeClass vm
            POST pods {metadata: {name: c}, spec: {runtimeClassName: vm, containers: [{name: c, image: i}]}} | .spec.overhead .spec.nodeSelector .spec.tolerations.2
                201 Pod c {"memory":"64Mi"} {"vm":"yes"} {"key":"vm","operator":"Exists"}
            POST pods {metadata: {name: d}, spec: {runtimeClassName: vm, overhead: {memory: 1Mi}, containers: [{name: c, image: i}]}}
                403 Forbidden pods "d" is forbidden: pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead
            POST pods {metadata: {name: d}, spec: {overhead: {memory: 1Mi}, containers: [{name: c, image: i}]}}
                403 Forbidden pods "d" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead
            POST limitranges {metadata: {name: l}, spec: {limits: [{type: Container, default: {cpu: 500m}, defaultRequest: {cpu: 100m}, max: {memory: 1Gi}}]}} | .spec.limits.0
                201 LimitRange l {"default":{"cpu":"500m","memory":"1Gi"},"defaultRequest":{"cpu":"100m","memory":"1Gi"},"max":{"memory":"1Gi"},"type":"Container"}
            POST pods {metadata: {name: e}, spec: {containers: [{name: c, image: i}]}} | .spec.containers.0.resources .metadata.annotations
                201 Pod e {"limits":{"cpu":"500m","memory":"1Gi"},"requests":{"cpu":"100m","memory":"1Gi"}} {"kubernetes.io/limit-ranger":"LimitRanger plugin set: cpu, memory request for container c; cpu, memory limit for container c"}
            POST pods {metadata: {name: f}, spec: {containers: [{name: c, image: i, resources: {limits: {memory: 2Gi}}}]}}
                403 Forbidden pods "f" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi
        "#]],
    );
}

#[test]
fn a_quota_bounds_a_namespace() {
    check(
        "
        POST resourcequotas {metadata: {name: q}, spec: {hard: {pods: 2, requests.cpu: 1, requests.example.com/gpu: 1}}}
        POST pods {metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}
        POST pods {metadata: {name: a}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 600m}, limits: {example.com/gpu: 1}}}]}}
        POST pods {metadata: {name: b}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 600m}, limits: {example.com/gpu: 1}}}]}}
        PATCH:merge pods/a/status {status: {phase: Succeeded}}
        POST pods {metadata: {name: b}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 600m}, limits: {example.com/gpu: 1}}}]}}
        ",
        expect![[r#"
            POST resourcequotas {metadata: {name: q}, spec: {hard: {pods: 2, requests.cpu: 1, requests.example.com/gpu: 1}}}
                201 ResourceQuota q
            POST pods {metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}
                403 Forbidden pods "a" is forbidden: failed quota: q: must specify requests.cpu for: c
            POST pods {metadata: {name: a}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 600m}, limits: {example.com/gpu: 1}}}]}}
                201 Pod a
            POST pods {metadata: {name: b}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 600m}, limits: {example.com/gpu: 1}}}]}}
                403 Forbidden pods "b" is forbidden: exceeded quota: q, requested: requests.cpu=600m,requests.example.com/gpu=1, used: requests.cpu=600m,requests.example.com/gpu=1, limited: requests.cpu=1,requests.example.com/gpu=1
            PATCH:merge pods/a/status {status: {phase: Succeeded}}
                200 Pod a
            POST pods {metadata: {name: b}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 600m}, limits: {example.com/gpu: 1}}}]}}
                201 Pod b
        "#]],
    );
}

#[test]
fn little_of_a_pod_may_change() {
    check(
        "
        POST pods {metadata: {name: a}, spec: {tolerations: [{key: k, operator: Exists}], containers: [{name: c, image: i}]}}
        PATCH:strategic pods/a {spec: {containers: [{name: c, image: j}]}} | .metadata.generation
        PATCH:merge pods/a {metadata: {labels: {x: why}}} | .metadata.generation
        PATCH:merge pods/a {spec: {nodeName: n1}}
        PATCH:merge pods/a {spec: {schedulerName: other}}
        PATCH:merge pods/a {spec: {tolerations: []}}
        PATCH:json pods/a [{op: add, path: /spec/tolerations/-, value: {key: l, operator: Exists}}]
        PATCH:merge pods/a {spec: {activeDeadlineSeconds: 5}}
        PATCH:merge pods/a {spec: {activeDeadlineSeconds: 6}}
        PATCH:merge pods/a {spec: {schedulingGates: [{name: g}]}}
        PATCH:merge pods/a {status: {phase: Running}} | .status.phase
        PATCH:merge pods/a/status {status: {phase: Running}, spec: {nodeName: x}, metadata: {labels: {x: z}}} | .status.phase .spec.nodeName .metadata.labels .metadata.generation
        PATCH:strategic pods/a/resize {spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}
        ",
        expect![[r#"
            POST pods {metadata: {name: a}, spec: {tolerations: [{key: k, operator: Exists}], containers: [{name: c, image: i}]}}
                201 Pod a
            PATCH:strategic pods/a {spec: {containers: [{name: c, image: j}]}} | .metadata.generation
                200 Pod a 2
            PATCH:merge pods/a {metadata: {labels: {x: why}}} | .metadata.generation
                200 Pod a 2
            PATCH:merge pods/a {spec: {nodeName: n1}}
                422 Invalid Pod "a" is invalid: spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)
            PATCH:merge pods/a {spec: {schedulerName: other}}
                422 Invalid Pod "a" is invalid: spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)
            PATCH:merge pods/a {spec: {tolerations: []}}
                422 Invalid Pod "a" is invalid: spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds
            PATCH:json pods/a [{op: add, path: /spec/tolerations/-, value: {key: l, operator: Exists}}]
                200 Pod a
            PATCH:merge pods/a {spec: {activeDeadlineSeconds: 5}}
                200 Pod a
            PATCH:merge pods/a {spec: {activeDeadlineSeconds: 6}}
                422 Invalid Pod "a" is invalid: spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value
            PATCH:merge pods/a {spec: {schedulingGates: [{name: g}]}}
                422 Invalid Pod "a" is invalid: spec.schedulingGates: Forbidden: only deletion is allowed, but found new scheduling gate 'g'
            PATCH:merge pods/a {status: {phase: Running}} | .status.phase
                200 Pod a "Pending"
            PATCH:merge pods/a/status {status: {phase: Running}, spec: {nodeName: x}, metadata: {labels: {x: z}}} | .status.phase .spec.nodeName .metadata.labels .metadata.generation
                200 Pod a "Running" null {"x":"z"} 4
            PATCH:strategic pods/a/resize {spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}
                422 Invalid Pod "a" is invalid: spec: Invalid value: "BestEffort": Pod QOS Class may not change as a result of resizing
        "#]],
    );
}

#[test]
fn a_gated_pod_may_be_narrowed() {
    check(
        "
        POST pods {metadata: {name: a}, spec: {schedulingGates: [{name: g}, {name: h}], nodeSelector: {a: b}, containers: [{name: c, image: i}]}}
        PATCH:merge pods/a {spec: {nodeSelector: {c: d}}} | .spec.nodeSelector
        PATCH:merge pods/a {spec: {nodeSelector: {a: x}}}
        PATCH:merge pods/a {spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: k, operator: Exists}]}]}}}}}
        PATCH:merge pods/a {spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: l, operator: Exists}]}]}}}}}
        PATCH:merge pods/a {spec: {schedulingGates: [{name: g}]}}
        PATCH:merge pods/a {spec: {schedulingGates: null}}
        PATCH:merge pods/a {spec: {nodeSelector: {e: f}}}
        ",
        expect![[r#"
            POST pods {metadata: {name: a}, spec: {schedulingGates: [{name: g}, {name: h}], nodeSelector: {a: b}, containers: [{name: c, image: i}]}}
                201 Pod a
            PATCH:merge pods/a {spec: {nodeSelector: {c: d}}} | .spec.nodeSelector
                200 Pod a {"a":"b","c":"d"}
            PATCH:merge pods/a {spec: {nodeSelector: {a: x}}}
                422 Invalid Pod "a" is invalid: spec.nodeSelector: Invalid value: {"a":"x","c":"d"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)
            PATCH:merge pods/a {spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: k, operator: Exists}]}]}}}}}
                200 Pod a
            PATCH:merge pods/a {spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: l, operator: Exists}]}]}}}}}
                422 Invalid Pod "a" is invalid: spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]: Invalid value: {"matchExpressions":[{"key":"l","operator":"Exists"}]}: only additions are allowed (no mutations or deletions)
            PATCH:merge pods/a {spec: {schedulingGates: [{name: g}]}}
                200 Pod a
            PATCH:merge pods/a {spec: {schedulingGates: null}}
                200 Pod a
            PATCH:merge pods/a {spec: {nodeSelector: {e: f}}}
                422 Invalid Pod "a" is invalid: spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)
        "#]],
    );
}

#[test]
fn binding_has_preconditions() {
    check(
        "
        POST pods {metadata: {name: a}, spec: {containers: [{name: c, image: i}]}} | .metadata.uid .metadata.resourceVersion
        POST pods/a/binding {metadata: {name: b}, target: {name: n1}}
        POST pods/a/binding {metadata: {name: a}, target: {}}
        POST pods/a/binding {metadata: {name: a}, target: {kind: Pod, name: n}}
        POST pods/a/binding {metadata: {name: a, uid: other}, target: {name: n1}}
        POST pods/a/binding {metadata: {name: a, resourceVersion: '3'}, target: {name: n1}}
        POST pods/zzz/binding {metadata: {name: zzz}, target: {name: n1}}
        POST pods/a/binding {metadata: {name: a, resourceVersion: '8', annotations: {epoch: '4'}}, target: {kind: Node, name: n1}}
        GET pods/a | .spec.nodeName .metadata.annotations .status.conditions .metadata.generation
        POST pods/a/binding {metadata: {name: a}, target: {name: m}}
        POST pods {metadata: {name: g}, spec: {schedulingGates: [{name: g}], containers: [{name: c, image: i}]}}
        POST pods/g/binding {metadata: {name: g}, target: {name: n1}}
        DELETE pods/a
        POST pods/a/binding {metadata: {name: a}, target: {name: m}}
        GET /api/v1/pods?fieldSelector=spec.nodeName%3Dn1
        GET /api/v1/pods?fieldSelector=spec.nodeName%3D
        GET pods?fieldSelector=spec.nodeName%3Dn1,status.phase!%3DPending
        ",
        expect![[r#"
            POST pods {metadata: {name: a}, spec: {containers: [{name: c, image: i}]}} | .metadata.uid .metadata.resourceVersion
                201 Pod a "8621a03f-e0bb-4b7b-8e1f-7555983aa92f" "8"
            POST pods/a/binding {metadata: {name: b}, target: {name: n1}}
                400 BadRequest name in URL does not match name in Binding object
            POST pods/a/binding {metadata: {name: a}, target: {}}
                500  target.name: Required value
            POST pods/a/binding {metadata: {name: a}, target: {kind: Pod, name: n}}
                500  target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"
            POST pods/a/binding {metadata: {name: a, uid: other}, target: {name: n1}}
                409 Conflict Operation cannot be fulfilled on pods "a": StorageError: invalid object, Code: 4, Key: /registry/pods/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other, UID in object meta: 8621a03f-e0bb-4b7b-8e1f-7555983aa92f
            POST pods/a/binding {metadata: {name: a, resourceVersion: '3'}, target: {name: n1}}
                409 Conflict Operation cannot be fulfilled on pods "a": StorageError: invalid object, Code: 4, Key: /registry/pods/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: ResourceVersion in precondition: 3, ResourceVersion in object meta: 8
            POST pods/zzz/binding {metadata: {name: zzz}, target: {name: n1}}
                404 NotFound pods "zzz" not found
            POST pods/a/binding {metadata: {name: a, resourceVersion: '8', annotations: {epoch: '4'}}, target: {kind: Node, name: n1}}
                201 Success
            GET pods/a | .spec.nodeName .metadata.annotations .status.conditions .metadata.generation
                200 Pod a "n1" {"epoch":"4"} [{"lastTransitionTime":"2026-01-01T00:00:00Z","status":"True","type":"PodScheduled"}] 1
            POST pods/a/binding {metadata: {name: a}, target: {name: m}}
                409 Conflict Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n1"
            POST pods {metadata: {name: g}, spec: {schedulingGates: [{name: g}], containers: [{name: c, image: i}]}}
                201 Pod g
            POST pods/g/binding {metadata: {name: g}, target: {name: n1}}
                409 Conflict Operation cannot be fulfilled on pods/binding "g": pod g has non-empty .spec.schedulingGates
            DELETE pods/a
                200 Pod a
            POST pods/a/binding {metadata: {name: a}, target: {name: m}}
                409 Conflict Operation cannot be fulfilled on pods/binding "a": pod a is being deleted, cannot be assigned to a host
            GET /api/v1/pods?fieldSelector=spec.nodeName%3Dn1
                200 PodList [a]
            GET /api/v1/pods?fieldSelector=spec.nodeName%3D
                200 PodList [g]
            GET pods?fieldSelector=spec.nodeName%3Dn1,status.phase!%3DPending
                200 PodList []
        "#]],
    );
}

#[test]
fn an_eviction_asks_the_budget() {
    check(
        "
        POST pods {metadata: {name: a, labels: {app: x}}, spec: {nodeName: n1, containers: [{name: c, image: i}]}}
        PATCH:merge pods/a/status {status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}}
        POST poddisruptionbudgets {metadata: {name: p}, spec: {minAvailable: 1, selector: {matchLabels: {app: x}}}}
        POST pods/a/eviction {metadata: {name: a}}
        PATCH:merge poddisruptionbudgets/p/status {status: {observedGeneration: 1, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1, disruptionsAllowed: 0}}
        POST pods/a/eviction {metadata: {name: a}} | .details
        PATCH:merge poddisruptionbudgets/p/status {status: {disruptionsAllowed: 1}}
        POST pods/a/eviction {metadata: {name: b}}
        POST pods/a/eviction {metadata: {name: a}}
        GET pods/a | .metadata.deletionTimestamp .metadata.deletionGracePeriodSeconds .status.conditions
        GET poddisruptionbudgets/p | .status.disruptionsAllowed .status.disruptedPods
        ",
        expect![[r#"
            POST pods {metadata: {name: a, labels: {app: x}}, spec: {nodeName: n1, containers: [{name: c, image: i}]}}
                201 Pod a
            PATCH:merge pods/a/status {status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}}
                200 Pod a
            POST poddisruptionbudgets {metadata: {name: p}, spec: {minAvailable: 1, selector: {matchLabels: {app: x}}}}
                201 PodDisruptionBudget p
            POST pods/a/eviction {metadata: {name: a}}
                429 TooManyRequests Cannot evict pod as it would violate the pod's disruption budget.
            PATCH:merge poddisruptionbudgets/p/status {status: {observedGeneration: 1, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1, disruptionsAllowed: 0}}
                200 PodDisruptionBudget p
            POST pods/a/eviction {metadata: {name: a}} | .details
                429 TooManyRequests Cannot evict pod as it would violate the pod's disruption budget. {"causes":[{"message":"The disruption budget p needs 1 healthy pods and has 1 currently","reason":"DisruptionBudget"}]}
            PATCH:merge poddisruptionbudgets/p/status {status: {disruptionsAllowed: 1}}
                200 PodDisruptionBudget p
            POST pods/a/eviction {metadata: {name: b}}
                400 BadRequest name in URL does not match name in Eviction object
            POST pods/a/eviction {metadata: {name: a}}
                201 Success
            GET pods/a | .metadata.deletionTimestamp .metadata.deletionGracePeriodSeconds .status.conditions
                200 Pod a "2026-01-01T00:00:30Z" 30 [{"status":"True","type":"Ready"},{"lastTransitionTime":"2026-01-01T00:00:00Z","message":"Eviction API: evicting","reason":"EvictionByEvictionAPI","status":"True","type":"DisruptionTarget"}]
            GET poddisruptionbudgets/p | .status.disruptionsAllowed .status.disruptedPods
                200 PodDisruptionBudget p 0 {"a":"2026-01-01T00:00:00Z"}
        "#]],
    );
}
