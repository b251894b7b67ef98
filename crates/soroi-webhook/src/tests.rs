//! What every kind has in common: both steps in one, and what passes untouched.

use serde_json::json;

use super::*;

/// The request that the tests of this crate vary.
pub(crate) fn review<'a>(operation: Operation, group: &'a str, kind: &'a str) -> Review<'a> {
    Review {
        operation,
        group,
        version: "v1",
        kind,
        subresource: "",
        namespace: "default",
        name: "train",
        object: None,
        old_object: None,
        user: "someone",
        dry_run: false,
        default_queue: false,
    }
}

/// One line per answer: what was changed, warned of, or refused.
pub(crate) fn picture(verdict: Verdict) -> String {
    match verdict {
        Verdict::Denied(denial) => format!("{} {}: {}\n", denial.code, denial.reason, denial.message),
        Verdict::Allowed { object, warnings } => {
            let mut picture = if object.is_some() { "completed\n" } else { "as it is\n" }.to_owned();
            for warning in warnings {
                picture += &format!("warning: {warning}\n");
            }
            picture
        }
    }
}

#[test]
fn a_job_is_completed_and_judged_in_one_step() {
    let job = |minimum: &str| {
        json!({
            "metadata": {
                "labels": {"kueue.x-k8s.io/queue-name": "team-a"},
                "annotations": {"kueue.x-k8s.io/job-min-parallelism": minimum},
            },
            "spec": {"parallelism": 4},
        })
    };
    let admitted =
        |job: &Value| admit(&Review { object: Some(job), ..review(Operation::Create, "batch", "Job") });
    let Verdict::Allowed { object: Some(object), warnings } = admitted(&job("2")) else {
        panic!("it is a good job");
    };
    assert_eq!(object["spec"]["suspend"], true);
    assert_eq!(object["spec"]["parallelism"], 4, "the rest is as it was");
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(
        admitted(&object),
        Verdict::Allowed { object: None, warnings: Vec::new() },
        "twice is as once"
    );
    assert!(matches!(admitted(&job("9")), Verdict::Denied(_)));
}

#[test]
fn what_soroi_does_not_manage_passes_untouched() {
    let untouched = Verdict::Allowed { object: None, warnings: Vec::new() };
    let strange = json!({"metadata": {"labels": 5}, "spec": [1, 2], "status": "x"});
    let unlabelled = json!({"metadata": {"name": "a"}, "spec": {"parallelism": -1}});
    for operation in [Operation::Create, Operation::Update, Operation::Delete] {
        for (group, kind) in [
            ("", "Pod"),
            ("batch", "Job"),
            ("apps", "Deployment"),
            ("batch.volcano.sh", "Job"),
            ("kueue.x-k8s.io", "LocalQueue"),
            ("kueue.x-k8s.io", "Workload"),
            ("kueue.x-k8s.io", "ClusterQueue"),
            ("scheduling.volcano.sh", "PodGroup"),
        ] {
            for object in [&strange, &unlabelled] {
                for subresource in ["", "status", "scale"] {
                    let request = Review {
                        object: Some(object),
                        old_object: Some(object),
                        subresource,
                        ..review(operation, group, kind)
                    };
                    assert_eq!(admit(&request), untouched, "{operation:?} {group}/{kind} {subresource}");
                }
            }
            assert_eq!(admit(&review(operation, group, kind)), untouched, "{operation:?} {group}/{kind}");
        }
    }
}

fn broken_queue() -> Value {
    json!({"spec": {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}})
}

fn update(old: &Value, new: &Value) -> Verdict {
    let request = review(Operation::Update, "kueue.x-k8s.io", "ClusterQueue");
    admit(&Review { object: Some(new), old_object: Some(old), ..request })
}

#[test]
fn what_is_being_deleted_can_go_whatever_is_wrong_with_it() {
    let mut queue = broken_queue();
    assert!(matches!(update(&json!({}), &queue), Verdict::Denied(_)));
    queue["metadata"]["deletionTimestamp"] = "2026-05-04T03:02:01Z".into();
    assert!(matches!(update(&json!({}), &queue), Verdict::Allowed { .. }));
}

#[test]
fn an_old_fault_is_not_held_against_another_change() {
    let old = broken_queue();
    let mut labelled = old.clone();
    labelled["metadata"]["labels"] = json!({"seen": "yes"});
    assert!(matches!(update(&old, &labelled), Verdict::Allowed { .. }));
    let mut worse = old.clone();
    worse["spec"]["namespaceSelector"]["matchExpressions"][0]["key"] = "a b".into();
    let Verdict::Denied(denial) = update(&old, &worse) else { panic!("a new fault") };
    assert_eq!(denial.causes.len(), 1);
    assert_eq!(denial.causes[0].field, "spec.namespaceSelector.matchExpressions[0].key");
    assert_eq!(denial.causes[0].kind.as_str(), "FieldValueInvalid");
}

mod pods {
    use super::*;

    fn scheduler(spec: Value, labels: Value) -> Value {
        let pod = json!({"metadata": {"labels": labels}, "spec": spec});
        let request = Review { object: Some(&pod), ..review(Operation::Create, "", "Pod") };
        default(&request).unwrap_or(pod)["spec"]["schedulerName"].clone()
    }

    #[test]
    fn pods_of_a_release_get_our_scheduler() {
        let gang = json!({"soroi.dev/gang": "1f35fefc"});
        for (spec, labels, name) in [
            (json!({"schedulerName": "default-scheduler"}), gang.clone(), json!("soroi")),
            (json!({}), gang.clone(), json!("soroi")),
            (json!({"schedulerName": "volcano"}), gang.clone(), json!("volcano")),
            (json!({"schedulerName": "mine"}), gang.clone(), json!("mine")),
            (json!({"schedulerName": "default-scheduler"}), json!({}), json!("default-scheduler")),
            (
                json!({"schedulerName": "default-scheduler", "schedulingGates": [{"name": "kueue.x-k8s.io/topology"}]}),
                gang.clone(),
                json!("default-scheduler"),
            ),
        ] {
            assert_eq!(scheduler(spec.clone(), labels.clone()), name, "{spec} {labels}");
        }
    }

    #[test]
    fn a_pod_that_exists_keeps_its_scheduler() {
        let pod = json!({"metadata": {"labels": {"soroi.dev/gang": "g"}}, "spec": {"schedulerName": "default-scheduler"}});
        let request = Review { object: Some(&pod), ..review(Operation::Update, "", "Pod") };
        assert_eq!(default(&request), None);
    }
}

mod plans {
    use super::*;

    fn plan(uid: &str) -> Value {
        json!({"spec": {
            "gang": {"kind": "Workload", "namespace": "default", "name": "job-a", "uid": uid},
            "leaderEpoch": 1, "pods": 2,
            "podSets": [{"name": "main", "count": 2, "nodes": [{"roots": ["a", "b"], "pods": 1}]}],
        }})
    }

    #[test]
    fn a_plan_belongs_to_one_gang_and_can_be_read_back() {
        let judge = |operation, new: &Value, old: Option<&Value>| {
            let request = review(operation, "soroi.dev", "GangPlan");
            picture(admit(&Review { object: Some(new), old_object: old, ..request }))
        };
        let good = plan("train");
        let mut board = judge(Operation::Create, &good, None);
        board += &judge(Operation::Create, &plan("other"), None);
        board += &judge(Operation::Update, &plan("other"), Some(&good));
        let mut broken = good.clone();
        broken["spec"]["podSets"][0]["nodes"][0] = json!({"roots": ["a", "b"], "podsEach": [1]});
        board += &judge(Operation::Update, &broken, Some(&good));
        let mut elsewhere = good.clone();
        elsewhere["spec"]["gang"]["namespace"] = "other".into();
        board += &judge(Operation::Create, &elsewhere, None);
        let mut strange = good.clone();
        strange["spec"]["policy"] = "Sideways".into();
        board += &judge(Operation::Update, &strange, Some(&good));
        expect_test::expect![[r#"
            as it is
            422 Invalid: GangPlan.soroi.dev "train" is invalid: metadata.name: Invalid value: "train": must be the uid of the gang
            422 Invalid: GangPlan.soroi.dev "train" is invalid: [metadata.name: Invalid value: "train": must be the uid of the gang, spec.gang: Forbidden: is immutable: another gang has another plan]
            422 Invalid: GangPlan.soroi.dev "train" is invalid: spec.podSets[0]: Invalid value: nodes[0]: needs pods, or one entry of podsEach per root
            422 Invalid: GangPlan.soroi.dev "train" is invalid: spec.gang.namespace: Invalid value: "other": must be the plan's own namespace
            422 Invalid: GangPlan.soroi.dev "train" is invalid: spec: Invalid value: unknown variant `Sideways`, expected one of `Unified`, `TopologyOnly`, `AfterAdmission`, `QuotaOnly`
        "#]].assert_eq(&board);
    }
}
