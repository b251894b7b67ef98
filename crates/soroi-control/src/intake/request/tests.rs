//! The request formula, case by case. Expected values were checked against Kubernetes 1.36.1.

use expect_test::{Expect, expect};

use crate::intake::tests::{shape_line, yaml};
use crate::intake::{Schedulers, pod};

/// The requests of a pod with this `spec` (and whatever else the text adds at its level).
fn check(text: &str, expected: Expect) {
    let text = format!("{{metadata: {{name: p, uid: u}}, {text}}}");
    let facts = pod(&yaml(&text), &Schedulers::default());
    expected.assert_eq(&facts.map_or_else(|e| e.to_string(), |facts| shape_line(&facts.pod.shape)));
}

#[test]
fn containers_add_up_and_overhead_comes_on_top() {
    check(
        "spec: {overhead: {cpu: 250m, memory: 10Mi}, containers: [\
         {name: a, resources: {requests: {cpu: 500m, memory: 1Gi}}},\
         {name: b, resources: {requests: {cpu: '1', example.com/gpu: '2'}}}]}",
        expect![["cpu=1750 example.com/gpu=2 memory=1084227584"]],
    );
}

#[test]
fn an_init_container_counts_when_it_needs_more_than_all_that_follows() {
    check(
        "spec: {containers: [{name: a, resources: {requests: {cpu: '2', memory: 1Gi}}}], initContainers: [\
         {name: i, resources: {requests: {cpu: '3', memory: 512Mi}}}]}",
        expect![["cpu=3000 memory=1073741824"]],
    );
}

#[test]
fn a_sidecar_runs_beside_the_init_containers_after_it_and_all_containers() {
    // Starting: s1 alone 1, i1 beside s1 5+1, s2 beside s1 2+1; running: 2+1+2.
    check(
        "spec: {containers: [{name: a, resources: {requests: {cpu: '2'}}}], initContainers: [\
         {name: s1, restartPolicy: Always, resources: {requests: {cpu: '1'}}},\
         {name: i1, resources: {requests: {cpu: '5'}}},\
         {name: s2, restartPolicy: Always, resources: {requests: {cpu: '2'}}}]}",
        expect![["cpu=6000"]],
    );
    // The same init container before the sidecars starts alone: 5; running 5.
    check(
        "spec: {containers: [{name: a, resources: {requests: {cpu: '2'}}}], initContainers: [\
         {name: i1, resources: {requests: {cpu: '5'}}},\
         {name: s1, restartPolicy: Always, resources: {requests: {cpu: '1'}}},\
         {name: s2, restartPolicy: Always, resources: {requests: {cpu: '2'}}}]}",
        expect![["cpu=5000"]],
    );
}

#[test]
fn pod_level_requests_stand_instead_of_the_sum() {
    check(
        "spec: {resources: {requests: {cpu: '4', example.com/gpu: '9'}}, overhead: {cpu: 100m}, containers: [\
         {name: a, resources: {requests: {cpu: '1', memory: 1Mi, example.com/gpu: '1'}}}]}",
        expect![["cpu=4100 example.com/gpu=1 memory=1048576"]],
    );
}

const RESIZED: &str = "spec: {containers: [{name: a, resources: {requests: {cpu: '2', memory: 1Mi}}}]}, status: {\
    CONDITIONS containerStatuses: [{name: a, ready: true, restartCount: 0, image: i, imageID: i, \
    allocatedResources: {cpu: '3', memory: 1Mi}, resources: {requests: {cpu: '4', memory: 1Mi}}}]}";

#[test]
fn while_a_resize_is_under_way_the_most_of_asked_allocated_and_actual_is_charged() {
    check(&RESIZED.replace("CONDITIONS", ""), expect![["cpu=4000 memory=1048576"]]);
    check(
        &RESIZED.replace("CONDITIONS", "").replace("cpu: '2'", "cpu: '8'"),
        expect![["cpu=8000 memory=1048576"]],
    );
}

#[test]
fn what_can_never_be_granted_is_not_charged() {
    let infeasible = "conditions: [{type: PodResizePending, status: 'True', reason: Infeasible}],";
    check(
        &RESIZED.replace("CONDITIONS", infeasible).replace("cpu: '2'", "cpu: '8'"),
        expect![["cpu=4000 memory=1048576"]],
    );
}

#[test]
fn a_resize_at_pod_level_is_charged_alike() {
    let text = "spec: {resources: {requests: {cpu: '1', memory: 1Mi}}, containers: [{name: a}]}, status: {\
        allocatedResources: {cpu: '2'}, resources: {requests: {cpu: '3', memory: 2Mi}}}";
    check(text, expect![["cpu=3000 memory=2097152"]]);
}

#[test]
fn fractions_are_rounded_up_once_after_adding() {
    check(
        "spec: {containers: [{name: a, resources: {requests: {memory: 500m, cpu: 100u}}},\
         {name: b, resources: {requests: {memory: 500m, cpu: 100u}}}]}",
        expect![["cpu=2 memory=1"]],
    );
}

#[test]
fn absurd_sizes_saturate_and_nothing_wraps() {
    check(
        "spec: {containers: [{name: a, resources: {requests: {cpu: 9E, memory: 9Ei}}},\
         {name: b, resources: {requests: {cpu: 9E, memory: 9Ei}}}]}",
        expect![["cpu=9223372036854775807 memory=9223372036854775807"]],
    );
}

#[test]
fn a_request_of_nothing_is_no_request() {
    check(
        "spec: {containers: [{name: a, resources: {requests: {cpu: '0', memory: '1'}}}]}",
        expect![["memory=1"]],
    );
}
