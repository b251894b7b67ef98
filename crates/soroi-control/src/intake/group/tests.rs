//! What intake makes of PodGroups and their pods.

use expect_test::{Expect, expect};

use super::*;
use crate::intake::tests::{shape_line, yaml};
use crate::intake::{PodFacts, Schedulers, pod};

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
        let roll: Roll = members.collect();
        pod_sets(&Rolls::from(&roll), &[]).into_iter().map(line).collect::<Vec<_>>().join("\n")
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
fn what_was_decided_keeps_its_name_when_others_join() {
    let name = |pod: &PodFacts, known: &[Named]| {
        let others = [member("a", "worker", 1000, "Pending"), member("s", "worker-2", 3000, "Pending")];
        let roll: Roll = others.iter().chain([pod]).collect();
        let sets = pod_sets(&Rolls::from(&roll), known);
        let names: Vec<String> = sets.iter().map(|set| format!("{}={}", set.name, set.example)).collect();
        names.join(" ")
    };
    let pod = member("w", "worker", 2000, "Running");
    expect!["worker=uid-a worker-2=uid-w worker-2-2=uid-s"].assert_eq(&name(&pod, &[]));
    let known = [("worker".into(), fingerprint(&pod.pod.shape))];
    expect!["worker-2=uid-a worker=uid-w worker-2-2=uid-s"].assert_eq(&name(&pod, &known));
    // One that is decided and has no pods now keeps its name too.
    let gone = [("worker".into(), "of-nobody".into()), known[0].clone()];
    expect!["worker-2=uid-a worker=uid-w worker-2-2=uid-s"].assert_eq(&name(&pod, &gone));
}

#[test]
fn only_pods_that_run_or_may_run_are_part_of_a_pod_set() {
    check_sets(
        &[
            member("a", "", 1000, "Failed"),
            member("b", "", 1000, "Succeeded"),
            member("c", "No Label", 1000, "Pending"),
        ],
        expect![[r#"
            main 1 × example.com/gpu=1 like uid-c"#]],
    );
}

fn asking(name: &str, annotations: &str) -> PodFacts {
    let object = yaml(&format!(
        "
        metadata: {{name: {name}, namespace: team, uid: uid-{name}, annotations: {{{annotations}}}}}
        spec: {{containers: [{{name: c, image: i}}]}}
        "
    ));
    pod(&object, &Schedulers::default()).unwrap()
}

fn check_refused(members: &[PodFacts], expected: Expect) {
    let roll: Roll = members.iter().collect();
    let members = Rolls::from(&roll);
    let refused = refused(&members, &pod_sets(&members, &[]));
    expected.assert_eq(&refused.map(|invalid| invalid.to_string()).unwrap_or_default());
}

#[test]
fn a_group_of_which_no_workload_can_be_made_says_why() {
    let rack = "kueue.x-k8s.io/podset-required-topology: rack";
    let block = "kueue.x-k8s.io/podset-required-topology: block";
    let group = "kueue.x-k8s.io/podset-group-name: all";
    check_refused(&[asking("a", rack), asking("b", rack)], expect![""]);
    check_refused(
        &[asking("b", group), asking("a", rack)],
        expect![
            "pods[b].metadata.annotations[kueue.x-k8s.io/podset-group-name]: needs a required or a preferred level"
        ],
    );
    let another = expect![
        "pods[b].metadata.annotations: ask for another topology than those of a pod of the same role and shape"
    ];
    check_refused(&[asking("b", block), asking("a", rack)], another);
    let another = expect![
        "pods[b].metadata.annotations: ask for another topology than those of a pod of the same role and shape"
    ];
    check_refused(&[asking("b", ""), asking("a", rack)], another);
    let many: Vec<PodFacts> = (1..=17).map(|n| member(&n.to_string(), "", n * 1000, "Pending")).collect();
    check_refused(&many, expect![""]);
}

/// Pod sets `name=count`, and how many of each will not run again.
fn check_ended(planned: &str, succeeded: &[PodFacts], gone: u32, now: &str, expected: Expect) {
    let shape = |name: &str| member("x", "", if name == "big" { 2000 } else { 1000 }, "Pending").pod.shape;
    let parse = |text: &str| -> Vec<PodSet> {
        let each = text.split_whitespace().map(|one| one.split_once('=').unwrap());
        let set = |(name, count): (&str, &str)| PodSet {
            name: name.into(),
            role: None,
            count: count.parse().unwrap(),
            least: None,
            shape: shape(name),
            charged: None,
            topology: TopologyRequest::NONE,
            who: std::sync::Arc::default(),
        };
        each.map(set).collect()
    };
    let roll: Roll = succeeded.iter().collect();
    let succeeded = Rolls::from(&roll);
    expected.assert_eq(&format!("{:?}", ended(&parse(planned), succeeded.succeeded(), gone, &parse(now))));
}

#[test]
fn who_is_done_counts_for_his_pod_set_and_nobody_else_does() {
    let done = |name: &str, role: &str, gpus: u32| member(name, role, gpus, "Succeeded");
    check_ended("main=3", &[], 0, "main=3", expect!["[0]"]);
    check_ended("main=3", &[done("a", "", 1000)], 0, "main=2", expect!["[1]"]);
    // One is done and there, one is done and gone.
    check_ended("main=3", &[done("a", "", 1000)], 1, "main=1", expect!["[2]"]);
    // One was lost, and nobody is done.
    check_ended("main=3", &[], 0, "main=2", expect!["[0]"]);
    // More than were planned.
    check_ended("main=1", &[done("a", "", 1000), done("b", "", 1000)], 0, "", expect!["[1]"]);
    // By role, else by shape.
    check_ended("a=2 b=2", &[done("x", "b", 1000)], 0, "a=2 b=1", expect!["[0, 1]"]);
    check_ended("main=2 big=2", &[done("x", "", 2000)], 0, "main=2 big=1", expect!["[0, 1]"]);
    // Who is gone is looked for where pods are missing.
    check_ended("a=2 b=2", &[], 1, "a=2 b=1", expect!["[0, 1]"]);
    check_ended("", &[done("x", "", 1000)], 1, "", expect!["[]"]);
}
