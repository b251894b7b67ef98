//! PodGroups and Queues: tables of requests and answers.

use expect_test::expect;
use serde_json::{Value, json};

use crate::tests::{picture, review};
use crate::{Operation, Review, admit, default};

fn created(kind: &str, name: &str, object: Value) -> String {
    let request = review(Operation::Create, "scheduling.volcano.sh", kind);
    picture(admit(&Review { object: Some(&object), name, ..request }))
}

#[test]
fn queues_are_reclaimable_unless_they_say_otherwise() {
    let reclaimable = |object: Value| {
        let request = review(Operation::Create, "scheduling.volcano.sh", "Queue");
        default(&Review { object: Some(&object), ..request })
            .map(|queue| queue["spec"]["reclaimable"].clone())
    };
    assert_eq!(reclaimable(json!({"metadata": {}})), Some(json!(true)));
    assert_eq!(reclaimable(json!({"spec": {"weight": 2}})), Some(json!(true)));
    assert_eq!(reclaimable(json!({"spec": {"reclaimable": false}})), None);
}

#[test]
fn a_queue_is_guaranteed_at_most_what_it_deserves_and_deserves_at_most_what_it_may_use() {
    let queue = |guarantee: Value, deserved: Value, capability: Value| {
        let guarantee = json!({"resource": guarantee});
        let spec = json!({
            "reclaimable": true, "guarantee": guarantee, "deserved": deserved, "capability": capability,
        });
        created("Queue", "team", json!({"spec": spec}))
    };
    let mut board = queue(json!({"cpu": 1}), json!({"cpu": "1000m"}), json!({"cpu": "1"}));
    board += &queue(json!({"cpu": 2}), json!({"cpu": 1}), json!({}));
    board += &queue(json!({}), json!({"memory": "2Gi"}), json!({"memory": "1Gi", "cpu": 1}));
    board += &queue(json!({"cpu": 2}), json!({"memory": 1}), json!({"cpu": "1500m"}));
    board += &queue(json!({"cpu": 3}), json!({"cpu": 2}), json!({"cpu": 1}));
    board += &created("Queue", "team", json!({"spec": {"reclaimable": true, "parent": "team"}}));
    board += &created("Queue", "root", json!({"spec": {"reclaimable": true, "parent": "team"}}));
    expect![[r#"
        as it is
        422 Invalid: Queue.scheduling.volcano.sh "team" is invalid: spec.guarantee.resource[cpu]: Invalid value: "2": must be at most spec.deserved[cpu] (1)
        422 Invalid: Queue.scheduling.volcano.sh "team" is invalid: spec.deserved[memory]: Invalid value: "2Gi": must be at most spec.capability[memory] (1Gi)
        422 Invalid: Queue.scheduling.volcano.sh "team" is invalid: spec.guarantee.resource[cpu]: Invalid value: "2": must be at most spec.capability[cpu] (1500m)
        422 Invalid: Queue.scheduling.volcano.sh "team" is invalid: [spec.guarantee.resource[cpu]: Invalid value: "3": must be at most spec.deserved[cpu] (2), spec.deserved[cpu]: Invalid value: "2": must be at most spec.capability[cpu] (1)]
        422 Invalid: Queue.scheduling.volcano.sh "team" is invalid: spec.parent: Invalid value: "team": a queue cannot be its own parent
        422 Invalid: Queue.scheduling.volcano.sh "root" is invalid: spec.parent: Forbidden: the root queue has no parent
    "#]].assert_eq(&board);
}

#[test]
fn the_two_queues_that_always_exist_cannot_be_deleted() {
    let deleted = |name: &str| {
        picture(admit(&Review { name, ..review(Operation::Delete, "scheduling.volcano.sh", "Queue") }))
    };
    let mut board = deleted("root");
    board += &deleted("default");
    board += &deleted("team");
    expect![[r#"
        403 Forbidden: queues.scheduling.volcano.sh "root" is forbidden: this queue cannot be deleted
        403 Forbidden: queues.scheduling.volcano.sh "default" is forbidden: this queue cannot be deleted
        as it is
    "#]]
    .assert_eq(&board);
}

#[test]
fn pod_groups_can_be_understood() {
    let mut board = String::new();
    for spec in [
        json!({"minMember": 4, "minTaskMember": {"worker": 3}}),
        json!({"minTaskMember": {"worker": -1}}),
        json!({"subGroupPolicy": [{"name": "a"}, {"name": "a"}]}),
        json!({"subGroupPolicy": [{"name": "a", "labelSelector": {"matchLabels": {"a b": "c"}}}]}),
    ] {
        board += &created("PodGroup", "train", json!({"spec": spec}));
    }
    expect![[r#"
        as it is
        422 Invalid: PodGroup.scheduling.volcano.sh "train" is invalid: spec.minTaskMember[worker]: Invalid value: -1: must be at least 0
        422 Invalid: PodGroup.scheduling.volcano.sh "train" is invalid: spec.subGroupPolicy[1].name: Duplicate value: "a"
        422 Invalid: PodGroup.scheduling.volcano.sh "train" is invalid: spec.subGroupPolicy[0].labelSelector.matchLabels: Invalid value: "a b": must be a label key: an optional DNS prefix and '/', then at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit
    "#]].assert_eq(&board);
}
