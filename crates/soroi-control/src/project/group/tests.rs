//! PodGroup statuses, compared by eye with what Volcano 1.15.1 wrote.

use expect_test::{Expect, expect};
use soroi_engine::event::Name;
use soroi_engine::reason::Full;

use super::super::workload::tests::picture;
use super::*;

fn members(states: &[(&str, TaskStatus)]) -> Vec<Member> {
    let member = |(name, status): &(&str, TaskStatus)| Member {
        name: Name::from(*name),
        status: *status,
        role: None,
        had_node: false,
    };
    states.iter().map(member).collect()
}

fn now() -> Timestamp {
    "2026-11-29T21:44:53Z".parse().unwrap()
}

fn three_of_four() -> PlaceProblem {
    let resource = "example.com/gpu".into();
    PlaceProblem {
        asked: 4,
        fitting: 3,
        nodes: 3,
        out: 1,
        excluded: [(NodeProblem::Insufficient { resource }, 1)].into(),
        full: Box::new(Full {
            nodes: 2,
            lacks: [(NodeProblem::Insufficient { resource: "example.com/gpu".into() }, 2)].into(),
        }),
        ..PlaceProblem::default()
    }
}

#[test]
fn a_gang_that_waits_for_places_is_told_as_volcano_tells_it() {
    use TaskStatus::Pending;
    let members = members(&[("a-7", Pending), ("a-5", Pending), ("a-c", Pending), ("a-p", Pending)]);
    let problem = three_of_four();
    let (status, event) = status("pg", 4, &members, true, &Verdict::NoPlace(None, &problem), None, now());
    expect![[r#"
        {
          "conditions": [
            {
              "lastTransitionTime": "2026-11-29T21:44:53Z",
              "message": "1/4 tasks in gang unschedulable: pod group is not ready, 4 Pending, 4 minAvailable; Pending: 1 Unschedulable, 3 Schedulable. Origin reason is a-p: 0/3 nodes are unavailable: 3 Insufficient example.com/gpu.",
              "reason": "NotEnoughResources",
              "status": "True",
              "transitionID": "6f47276c-d212-043e-8e0a-af468316f433",
              "type": "Unschedulable"
            }
          ],
          "phase": "Inqueue"
        }"#]].assert_eq(&picture(&status));
    expect!["4/4 tasks in gang unschedulable: pod group is not ready, 4 Pending, 4 minAvailable; Pending: 1 Unschedulable, 3 Schedulable. Origin reason is a-p: 0/3 nodes are unavailable: 3 Insufficient example.com/gpu."].assert_eq(&event.unwrap());
    // Later, with nothing changed, the same is said with the same id and time.
    let later = now() + jiff::SignedDuration::from_secs(5);
    let verdict = Verdict::NoPlace(None, &problem);
    let (again, _) = super::status("pg", 4, &members, true, &verdict, Some(&status), later);
    assert_eq!(again, status);
}

#[test]
fn once_it_runs_it_says_so_and_no_longer_that_it_cannot() {
    let waiting = members(&[("a", TaskStatus::Pending), ("b", TaskStatus::Pending)]);
    let problem = three_of_four();
    let (before, _) = status("pg", 2, &waiting, true, &Verdict::NoPlace(None, &problem), None, now());
    let running = members(&[("a", TaskStatus::Running), ("b", TaskStatus::Running)]);
    let later = now() + jiff::SignedDuration::from_secs(8);
    let (status, event) = status("pg", 2, &running, true, &Verdict::Ready, Some(&before), later);
    expect![[r#"
        {
          "conditions": [
            {
              "lastTransitionTime": "2026-11-29T21:45:01Z",
              "reason": "tasks in gang are ready to be scheduled",
              "status": "False",
              "transitionID": "eea2b887-62e4-551e-49f4-a617ab726dfc",
              "type": "Unschedulable"
            },
            {
              "lastTransitionTime": "2026-11-29T21:45:01Z",
              "reason": "tasks in gang are ready to be scheduled",
              "status": "True",
              "transitionID": "ce868337-14a6-113c-c620-e7a3e393abc3",
              "type": "Scheduled"
            }
          ],
          "phase": "Running",
          "running": 2
        }"#]]
    .assert_eq(&picture(&status));
    assert_eq!(event, None);
}

fn check_phase(min: u32, states: &[TaskStatus], admitted: bool, verdict: &Verdict<'_>, expected: Expect) {
    let states: Vec<(&str, TaskStatus)> = states.iter().map(|state| ("p", *state)).collect();
    let (status, _) = status("pg", min, &members(&states), admitted, verdict, None, now());
    expected.assert_eq(&format!("{:?}", status.phase.unwrap()));
}

#[test]
fn phases_follow_volcanos_rules() {
    use TaskStatus::*;
    let problem = three_of_four();
    check_phase(2, &[Pending, Pending], false, &Verdict::NoPlace(None, &problem), expect!["Pending"]);
    check_phase(2, &[Pending, Pending], true, &Verdict::NoPlace(None, &problem), expect!["Inqueue"]);
    check_phase(2, &[Binding, Bound], true, &Verdict::Underway, expect!["Inqueue"]);
    check_phase(2, &[Bound, Bound], true, &Verdict::Ready, expect!["Running"]);
    check_phase(2, &[Running, Succeeded, Pending], true, &Verdict::Ready, expect!["Running"]);
    check_phase(2, &[Succeeded, Failed], true, &Verdict::Ready, expect!["Completed"]);
    check_phase(2, &[Running, Pending], true, &Verdict::NoPlace(None, &problem), expect!["Unknown"]);
    check_phase(2, &[Running, Releasing], true, &Verdict::Underway, expect!["Inqueue"]);
    check_phase(0, &[], true, &Verdict::Underway, expect!["Inqueue"]);
}

#[test]
fn a_pod_that_is_deleted_while_it_runs_still_counts_as_scheduled() {
    let mut members = members(&[("a", TaskStatus::Running), ("b", TaskStatus::Releasing)]);
    members[1].had_node = true;
    let (status, _) = status("pg", 2, &members, true, &Verdict::Underway, None, now());
    assert_eq!(status.phase, Some(PodGroupPhase::Running));
}

#[test]
fn groups_without_enough_pods_and_with_queues_in_the_way_say_so() {
    let one = members(&[("a", TaskStatus::Pending)]);
    let told = |verdict: &Verdict<'_>| {
        let (status, event) = status("pg", 2, &one, false, verdict, None, now());
        let condition = status.conditions[0].clone();
        format!("{}: {}\n{}", condition.reason.unwrap(), condition.message.unwrap(), event.unwrap())
    };
    expect![[r#"
        NotEnoughTasks: Not enough valid tasks for gang-scheduling, valid: 1, min: 2
        Not enough valid tasks for gang-scheduling, valid: 1, min: 2"#]]
    .assert_eq(&told(&Verdict::TooFewPods));
    expect![[r#"
        NotEnoughPodsOfTask: Not enough valid pods of each task for gang-scheduling
        Not enough valid pods of each task for gang-scheduling"#]]
    .assert_eq(&told(&Verdict::TooFewPodsOfRole));
    expect![[r#"
        NotEnoughResources: 2/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 2 minAvailable; Pending: 1 Unschedulable. Origin reason is: queue resource quota insufficient: insufficient cpu
        1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 2 minAvailable; Pending: 1 Unschedulable. Origin reason is: queue resource quota insufficient: insufficient cpu"#]].assert_eq(&told(&Verdict::Other("queue resource quota insufficient: insufficient cpu")));
}

#[test]
fn nodes_are_counted_by_reason() {
    let problem = PlaceProblem {
        out: 25,
        excluded: [
            (NodeProblem::NotReady, 1),
            (NodeProblem::Unschedulable, 2),
            (NodeProblem::Taint { key: "gpu".into(), value: "yes".into() }, 3),
            (NodeProblem::Selector, 4),
            (NodeProblem::Affinity, 5),
            (NodeProblem::TooManyPods, 10),
        ]
        .into(),
        ..PlaceProblem::default()
    };
    expect!["0/25 nodes are unavailable: 1 node(s) were not ready, 10 node(s) pod number exceeded, 2 node(s) were unschedulable, 3 node(s) had untolerated taint {gpu: yes}, 9 node(s) didn't match Pod's node affinity/selector."].assert_eq(&nodes_error(&problem));
    expect!["0/3 nodes are unavailable."]
        .assert_eq(&nodes_error(&PlaceProblem { nodes: 3, ..PlaceProblem::default() }));
}
