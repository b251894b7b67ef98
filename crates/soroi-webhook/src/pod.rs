//! Pods of our releases are handed to our scheduler when they are created, and pods stay in the gang
//! and the queue that they were counted in.
//!
//! A Job's template cannot change its scheduler, not even while it is suspended, so the release
//! puts a label on it instead, and this is where the label has its effect.

use serde_json::Value;
use soroi_api::labels::{kubernetes, kueue, soroi, volcano};

use crate::field::Findings;
use crate::json::{annotation, items, label, text};

/// Annotations that name a pod's group.
pub const GROUP_KEYS: [&str; 2] = [volcano::GROUP_NAME, volcano::GROUP_NAME_VOLCANO];

/// Names our scheduler in a pod that carries the label of a gang that we place. A pod that names
/// another one on purpose keeps it, and so does a pod that is pinned to a topology domain: that is
/// bound by whom it names.
pub(crate) fn default(pod: &Value) -> Option<Value> {
    label(pod, soroi::GANG)?;
    let unnamed = match text(&pod["spec"]["schedulerName"]) {
        None => true,
        Some(name) => name == kubernetes::DEFAULT_SCHEDULER,
    };
    let pinned =
        items(&pod["spec"]["schedulingGates"]).iter().any(|gate| gate["name"] == kueue::GATE_TOPOLOGY);
    if !unnamed || pinned || !pod["spec"].is_object() {
        return None;
    }
    let mut pod = pod.clone();
    pod["spec"]["schedulerName"] = soroi::SCHEDULER_NAME.into();
    Some(pod)
}

/// A pod does not leave its group for another, whose places were decided without it (Kueue, Pod
/// webhook: the group's name is immutable). A pod without a group may be given one, as Volcano does.
/// Its queue may change while it waits, but not once it holds quota there: when it has a node.
pub(crate) fn change(new: &Value, old: &Value, findings: &mut Findings) {
    for key in GROUP_KEYS {
        let before = annotation(old, key).filter(|name| !name.is_empty());
        if before.is_some() && annotation(new, key) != before {
            findings.forbidden(format!("metadata.annotations[{key}]"), "is immutable");
        }
    }
    let key = kueue::QUEUE_NAME;
    if text(&old["spec"]["nodeName"]).is_some() && label(new, key) != label(old, key) {
        findings.forbidden(format!("metadata.labels[{key}]"), "is immutable once the pod has a node");
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use crate::tests::{picture, review};
    use crate::{Operation, Review, admit};

    #[test]
    fn a_pod_stays_in_its_group_and_in_the_queue_that_pays_for_it() {
        let pod = |queue: Option<&str>, group: Option<&str>, node: Option<&str>| {
            json!({
                "metadata": {
                    "labels": {"kueue.x-k8s.io/queue-name": queue},
                    "annotations": {"scheduling.k8s.io/group-name": group},
                },
                "spec": {"nodeName": node},
            })
        };
        let mut told = String::new();
        for (name, old, new) in [
            ("another group", pod(None, Some("a"), None), pod(None, Some("b"), None)),
            ("no group any more", pod(None, Some("a"), None), pod(None, None, None)),
            ("a group at last", pod(None, None, None), pod(None, Some("a"), None)),
            ("another queue, waiting", pod(Some("q"), None, None), pod(Some("r"), None, None)),
            ("another queue, bound", pod(Some("q"), None, Some("n")), pod(Some("r"), None, Some("n"))),
            ("a queue, bound", pod(None, None, Some("n")), pod(Some("r"), None, Some("n"))),
            ("bound meanwhile", pod(Some("q"), Some("a"), None), pod(Some("q"), Some("a"), Some("n"))),
        ] {
            let request = review(Operation::Update, "", "Pod");
            let verdict = admit(&Review { object: Some(&new), old_object: Some(&old), ..request });
            told += &format!("{name}: {}", picture(verdict));
        }
        expect![[r#"
            another group: 422 Invalid: Pod "train" is invalid: metadata.annotations[scheduling.k8s.io/group-name]: Forbidden: is immutable
            no group any more: 422 Invalid: Pod "train" is invalid: metadata.annotations[scheduling.k8s.io/group-name]: Forbidden: is immutable
            a group at last: as it is
            another queue, waiting: as it is
            another queue, bound: 422 Invalid: Pod "train" is invalid: metadata.labels[kueue.x-k8s.io/queue-name]: Forbidden: is immutable once the pod has a node
            a queue, bound: 422 Invalid: Pod "train" is invalid: metadata.labels[kueue.x-k8s.io/queue-name]: Forbidden: is immutable once the pod has a node
            bound meanwhile: as it is
        "#]].assert_eq(&told);
    }
}
