//! What intake makes of PodGroups and their pods.

use expect_test::{Expect, expect};

use super::*;
use crate::intake::Schedulers;
use crate::intake::pod;
use crate::intake::tests::{shape_line, yaml};

fn read(spec: &str) -> GroupFacts {
    group(&yaml(&format!(
        "{{metadata: {{name: ring, namespace: team, uid: pg, labels: {{kueue.x-k8s.io/queue-name: q}}}}, spec: {spec}, \
         status: {{phase: Inqueue}}}}"
    )))
    .unwrap()
}

#[test]
fn a_group_is_its_minimum_and_its_queues() {
    let facts = read("{minMember: 3, minTaskMember: {head: 1, worker: 2}, priorityClassName: high}");
    assert_eq!((&*facts.key, facts.min_member), ("podgroup:team/ring", 3));
    assert_eq!((facts.queue.as_deref(), &*facts.volcano_queue), (Some("q"), "default"));
    assert_eq!((facts.min_per_role.len(), facts.phase), (2, Some(PodGroupPhase::Inqueue)));
    // Volcano ignores roles that need more than the group does.
    assert!(read("{minMember: 2, minTaskMember: {head: 1, worker: 2}}").min_per_role.is_empty());
}

fn check_invalid(spec: &str, expected: Expect) {
    expected.assert_eq(&read(spec).invalid.map_or_else(String::new, |invalid| invalid.to_string()));
}

#[test]
fn what_cannot_be_honoured_is_refused_by_its_name() {
    check_invalid("{minMember: 2}", expect![[""]]);
    check_invalid("{minMember: -2}", expect!["spec.minMember: must not be negative"]);
    check_invalid(
        "{minMember: 2, networkTopology: {highestTierAllowed: 1}}",
        expect!["spec.networkTopology: mode hard is not supported"],
    );
    check_invalid("{minMember: 2, networkTopology: {mode: soft, highestTierAllowed: 1}}", expect![[""]]);
    check_invalid(
        "{minMember: 2, subGroupPolicy: [{name: a}]}",
        expect!["spec.subGroupPolicy: is not supported"],
    );
}

fn member(name: &str, role: &str, gpus: u32, status: &str) -> PodFacts {
    let object = yaml(&format!(
        "
        metadata:
          {{name: {name}, namespace: team, uid: uid-{name}, annotations: {{volcano.sh/task-spec: '{role}'}}}}
        spec:
          containers: [{{name: c, image: i, resources: {{requests: {{example.com/gpu: {gpus}m}}}}}}]
        status: {{phase: {status}}}
        "
    ));
    pod(&object, &Schedulers::default()).unwrap()
}

fn check_sets(members: &[PodFacts], expected: Expect) {
    let line = |set: GroupPodSet| {
        format!("{} {} × {} like {}", set.name, set.count, shape_line(&set.shape), set.example)
    };
    let told = |members: &mut dyn Iterator<Item = &PodFacts>| {
        pod_sets(members).into_iter().map(line).collect::<Vec<_>>().join("\n")
    };
    let text = told(&mut members.iter());
    assert_eq!(text, told(&mut members.iter().rev()), "the order of the pods does not matter");
    expected.assert_eq(&text);
}

#[test]
fn pods_of_a_group_are_told_apart_by_role_and_shape() {
    check_sets(
        &[
            member("w1", "worker", 1000, "Pending"),
            member("w2", "worker", 1000, "Running"),
            member("h", "head", 1000, "Pending"),
            member("big", "worker", 2000, "Pending"),
            member("odd", "worker-2", 3000, "Pending"),
        ],
        expect![[r#"
            head 1 × example.com/gpu=1 like uid-h
            worker 2 × example.com/gpu=1 like uid-w1
            worker-2 1 × example.com/gpu=2 like uid-big
            worker-2-2 1 × example.com/gpu=3 like uid-odd"#]],
    );
}

#[test]
fn failed_pods_are_no_members_any_more_and_succeeded_ones_still_are() {
    check_sets(
        &[
            member("a", "", 1000, "Failed"),
            member("b", "", 1000, "Succeeded"),
            member("c", "No Label", 1000, "Pending"),
        ],
        expect![[r#"
            main 1 × example.com/gpu=1 like uid-b
            main-2 1 × example.com/gpu=1 like uid-c"#]],
    );
}
