//! What the recorder lets through, and how events look.

use std::sync::Arc;

use expect_test::{Expect, expect};

use super::*;
use crate::project::workload::tests::picture;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_795_988_674 + seconds).unwrap()
}

fn workload(name: &str) -> About {
    words::workload(&"default".into(), &name.into(), &Arc::from(format!("uid-{name}")))
}

fn pending(note: &str) -> Occurrence {
    words::pending(workload("wl"), "Pending", note)
}

fn line(send: &Send) -> String {
    let (verb, event) = match send {
        Send::Create(event) => ("new", event),
        Send::Count(event) => ("count", event),
    };
    let count = event.series.as_ref().map_or(1, |series| series.count);
    format!("{verb} {} x{count}", event.note.as_deref().unwrap_or_default())
}

/// Plays notes of one object at given seconds and shows what is written when.
fn check(story: &[(i64, &str)], until: i64, expected: Expect) {
    let mut recorder = Recorder::new("soroi-0");
    let mut lines = Vec::new();
    let mut story = story.iter().peekable();
    for second in 0..=until {
        while let Some((_, note)) = story.next_if(|(when, _)| *when == second) {
            let sent = recorder.record(pending(note), at(second));
            lines.extend(sent.map(|send| format!("{second:<4} {}", line(&send))));
        }
        if recorder.next_due().is_some_and(|due| due <= at(second)) {
            let due = recorder.due(at(second));
            assert!(!due.is_empty(), "woken for nothing at {second}");
            lines.extend(due.iter().map(|send| format!("{second:<4} {}", line(send))));
        }
    }
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn a_repeated_note_is_counted_and_a_new_one_is_told_at_once() {
    check(
        &[(0, "3 of 4"), (1, "3 of 4"), (2, "3 of 4"), (3, "2 of 4"), (14, "3 of 4"), (15, "3 of 4")],
        60,
        expect![[r#"
            0    new 3 of 4 x1
            3    new 2 of 4 x1
            10   count 3 of 4 x3
            14   count 3 of 4 x4
            24   count 3 of 4 x5"#]],
    );
}

#[test]
fn what_is_true_again_is_seen_last() {
    check(
        &[(0, "3 of 4"), (1, "2 of 4"), (3, "3 of 4"), (4, "3 of 4"), (5, "2 of 4"), (6, "3 of 4")],
        60,
        expect![[r#"
            0    new 3 of 4 x1
            1    new 2 of 4 x1
            3    count 3 of 4 x2
            5    count 2 of 4 x2
            6    count 3 of 4 x4"#]],
    );
}

#[test]
fn a_series_that_was_silent_for_long_is_over() {
    check(
        &[(0, "3 of 4"), (400, "3 of 4")],
        410,
        expect![[r#"
            0    new 3 of 4 x1
            400  new 3 of 4 x1"#]],
    );
}

#[test]
fn a_flood_about_one_object_is_held_back_and_its_last_word_is_told() {
    let notes: Vec<String> = (0..40).map(|number| format!("note {number}")).collect();
    let story: Vec<(i64, &str)> = notes.iter().map(|note| (0, note.as_str())).collect();
    let mut recorder = Recorder::new("soroi-0");
    let now = story.iter().filter_map(|(_, note)| recorder.record(pending(note), at(0))).count();
    assert_eq!(now, 25);
    let other = words::pending(workload("other"), "Pending", "3 of 4");
    assert!(recorder.record(other, at(0)).is_some(), "other objects are not held back");
    assert_eq!(recorder.next_due(), Some(at(5)));
    let late: Vec<String> = recorder.due(at(5)).iter().map(line).collect();
    expect!["new note 39 x1"].assert_eq(&late.join("\n"));
    assert_eq!(recorder.next_due(), None);
}

#[test]
fn what_is_said_again_is_not_overtaken_by_what_was_held_back() {
    let mut recorder = Recorder::new("soroi-0");
    for number in 0..30 {
        recorder.record(pending(&format!("note {number}")), at(0));
    }
    recorder.record(pending("note 3"), at(1));
    // "note 29" waits no more: the state is "note 3" again, and that is on the board already.
    let due: Vec<String> = recorder.due(at(20)).iter().map(line).collect();
    assert_eq!(due, ["count note 3 x2"]);
}

#[test]
fn memory_is_bounded() {
    let mut recorder = Recorder::new("soroi-0");
    for number in 0..(SERIES_MAX + 10) {
        let about = workload(&format!("wl-{number}"));
        recorder.record(words::pending(about, "Pending", "3 of 4"), at(i64::try_from(number).unwrap() / 100));
        assert!(recorder.series.len() <= SERIES_MAX);
    }
    // The oldest were forgotten, and no more than an eighth.
    let known = |number: usize| {
        recorder.series.keys().any(|(uid, _, _)| *uid == workload(&format!("wl-{number}")).uid)
    };
    assert_eq!(recorder.series.len(), SERIES_MAX - SERIES_MAX / 8 + 10);
    assert_eq!((known(SERIES_MAX / 8 - 1), known(SERIES_MAX / 8)), (false, true));
    recorder.due(at(10_000));
    assert_eq!((recorder.series.len(), recorder.objects.len()), (0, 0));
}

#[test]
fn an_event_looks_like_kueues() {
    let mut recorder = Recorder::new("soroi-0");
    let text = "couldn't assign flavors to pod set main: topology \"gpu-topology\" allows to fit only 3 out of \
                4 pod(s)";
    recorder.record(pending(text), at(0));
    let Some(Send::Count(event)) = recorder.record(pending(text), at(12)) else { panic!("no count") };
    expect![[r#"
        {
          "action": "Pending",
          "apiVersion": "events.k8s.io/v1",
          "eventTime": "2026-11-29T21:44:34.000000Z",
          "kind": "Event",
          "metadata": {
            "name": "wl.60788c65432a9ec7",
            "namespace": "default"
          },
          "note": "couldn't assign flavors to pod set main: topology \"gpu-topology\" allows to fit only 3 out of 4 pod(s)",
          "reason": "Pending",
          "regarding": {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "name": "wl",
            "namespace": "default",
            "uid": "uid-wl"
          },
          "reportingController": "kueue-admission",
          "reportingInstance": "soroi-0",
          "series": {
            "count": 2,
            "lastObservedTime": "2026-11-29T21:44:46.000000Z"
          },
          "type": "Warning"
        }"#]].assert_eq(&picture(&event));
}

#[test]
fn what_is_too_long_is_cut() {
    let long = "揃".repeat(1_000);
    let about = words::workload(&"".into(), &"n".repeat(253).as_str().into(), &"u".into());
    let event = event(&words::pending(about, "Pending", &long), "i", 1, at(0));
    assert_eq!(event.note.unwrap().len(), 1_023);
    assert_eq!(event.metadata.name.unwrap().len(), 253);
    assert_eq!(event.metadata.namespace.as_deref(), Some("default"));
}

#[test]
fn every_event_has_its_wording() {
    let job = || words::job(&"default".into(), &"train".into(), &"u".into());
    let group = || words::group(&"default".into(), &"pg".into(), &"u".into());
    let pod = || words::pod(&"default".into(), &"p".into(), &"u".into());
    let all = [
        words::quota_reserved(workload("wl"), "gpu-queue", 8_600),
        words::admitted(workload("wl"), "gpu-queue", 0),
        pending("why"),
        words::evicted(workload("wl"), "NodeFailures", "why"),
        words::undone(workload("wl"), "why"),
        words::created_workload(job(), "default", "wl"),
        words::updated_workload(job(), "default", "wl"),
        words::cannot_compose(job(), "spec.x: is y"),
        words::started(job(), "gpu-queue"),
        words::suspended(job()),
        words::stopped(job(), "why"),
        words::finished_workload(job(), "default", "wl"),
        words::group_unschedulable(group(), "4/4 tasks in gang unschedulable: …"),
        words::group_scheduled(group()),
        words::scheduled(pod(), "worker-1"),
        words::failed_scheduling(pod(), "why"),
        words::invalid(workload("wl"), "spec.x: is y"),
    ];
    let lines = all.iter().map(|one| {
        let kind = if one.warning { "Warning" } else { "Normal" };
        format!("{:<8} {} {kind} {} [{}]: {}", one.about.kind, one.reporter, one.reason, one.action, one.note)
    });
    expect![[r#"
        Workload kueue-admission Normal QuotaReserved [QuotaReserved]: Quota reserved in ClusterQueue gpu-queue, wait time since queued was 9s
        Workload kueue-admission Normal Admitted [Admitted]: Admitted by ClusterQueue gpu-queue, wait time since reservation was 0s
        Workload kueue-admission Warning Pending [Pending]: why
        Workload kueue-admission Normal EvictedDueToNodeFailures [EvictedDueToNodeFailures]: why
        Workload soroi Warning AdmissionUndone [AdmissionUndone]: why
        Job      batch/job-kueue-controller Normal CreatedWorkload [CreatedWorkload]: Created Workload: default/wl
        Job      batch/job-kueue-controller Normal UpdatedWorkload [UpdatedWorkload]: Updated workload to match job: default/wl
        Job      batch/job-kueue-controller Warning ErrWorkloadCompose [ErrWorkloadCompose]: spec.x: is y
        Job      batch/job-kueue-controller Normal Started [Started]: Admitted by clusterQueue gpu-queue
        Job      batch/job-kueue-controller Normal Suspended [Suspended]: Kueue managed child job suspended
        Job      batch/job-kueue-controller Normal Stopped [Stopped]: why
        Job      batch/job-kueue-controller Normal FinishedWorkload [FinishedWorkload]: Workload 'default/wl' is declared finished
        PodGroup volcano Warning Unschedulable [Unschedulable]: 4/4 tasks in gang unschedulable: …
        PodGroup volcano Normal Scheduled [Scheduled]: pod group is ready
        Pod      soroi Normal Scheduled [Binding]: Successfully assigned default/p to worker-1
        Pod      soroi Warning FailedScheduling [Scheduling]: why
        Workload soroi Warning Invalid [Invalid]: spec.x: is y"#]].assert_eq(&lines.collect::<Vec<_>>().join("\n"));
}
