//! What `job` promises, as tests.

use serde_json::{Value, json};

use super::change;

/// What a change of one field says, for a Job in a given state.
fn said(suspend: bool, status: Value, field: &str, value: Value) -> Vec<String> {
    let old = json!({
        "spec": {"suspend": suspend, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}},
        "status": status,
    });
    let mut new = old.clone();
    *new.pointer_mut(field).unwrap_or(&mut Value::Null) = value.clone();
    if new.pointer(field) != Some(&value) {
        let (parent, key) = field.rsplit_once('/').unwrap();
        new.pointer_mut(parent).unwrap()[key] = value;
    }
    change::check(&new, &old).iter().map(|e| e.field.clone()).collect()
}

#[test]
fn the_template_moves_only_while_the_job_rests() {
    let resting = json!({"conditions": [{"type": "Suspended", "status": "True"}]});
    let active = json!({"conditions": [{"type": "Suspended", "status": "True"}], "active": 1});
    let selector = "/spec/template/spec/nodeSelector";
    let fixed = vec!["spec.template".to_owned()];
    let cases = [
        (true, resting.clone(), selector, json!({"a": "b"}), vec![]),
        (true, json!({}), selector, json!({"a": "b"}), fixed.clone()),
        (true, active, selector, json!({"a": "b"}), fixed.clone()),
        (false, resting.clone(), selector, json!({"a": "b"}), fixed.clone()),
        (
            true,
            resting.clone(),
            "/spec/template/spec/containers/0/resources",
            json!({"limits": {"cpu": "1"}}),
            vec![],
        ),
        (true, resting.clone(), "/spec/template/spec/containers/0/image", json!("j"), fixed.clone()),
        (true, resting.clone(), "/spec/template/spec/schedulerName", json!("s"), fixed),
        (true, resting, "/spec/suspend", json!(false), vec![]),
    ];
    for (suspend, status, field, value, expected) in cases {
        assert_eq!(
            said(suspend, status.clone(), field, value.clone()),
            expected,
            "{suspend} {status} {field} {value}"
        );
    }
}
