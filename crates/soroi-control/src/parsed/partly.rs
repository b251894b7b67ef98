//! What can still be read of an object of which something cannot?
//!
//! A part that does not decode is left out, and named: an object that is there must not count as gone for
//! one field, since it holds quota, or leads to it, or waits for it. Knows paths. Must never know what a
//! field means.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use serde_path_to_error::{Path, Segment};

use crate::intake::Invalid;

/// Parts that are left out before the object as a whole is given up.
const PARTS_MAX: usize = 32;

/// The object without what does not decode, and the first such part, if there is any.
///
/// # Errors
/// That part, when too little is left without it.
pub(super) fn read<T: DeserializeOwned>(mut object: Value) -> Result<(T, Option<Invalid>), Invalid> {
    let mut first = None;
    for _ in 0..PARTS_MAX {
        let error = match serde_path_to_error::deserialize::<_, T>(&object) {
            Ok(read) => return Ok((read, first)),
            Err(error) => error,
        };
        first.get_or_insert_with(|| Invalid::new(field(error.path()), error.inner()));
        let steps: Vec<&Segment> = error.path().iter().collect();
        if !leave_out(&mut object, &steps) {
            break;
        }
    }
    Err(first.unwrap_or_else(|| Invalid::new("metadata", "cannot be read")))
}

/// A path as it stands in messages: that of the object itself has no name.
fn field(path: &Path) -> String {
    let text = path.to_string();
    if text == "." { "spec".into() } else { text }
}

/// Takes the part at `steps` away, or the smallest one around it that can be found. False: there is none.
fn leave_out(value: &mut Value, steps: &[&Segment]) -> bool {
    let [step, inner @ ..] = steps else { return false };
    match (step, value) {
        (Segment::Map { key }, Value::Object(fields)) => {
            let Some(part) = fields.get_mut(key) else { return false };
            if leave_out(part, inner) {
                return true;
            }
            match key.as_str() {
                "metadata" => false,
                // Nearly every kind can be without one, but not without the field.
                "spec" if part.as_object().is_none_or(|fields| !fields.is_empty()) => {
                    *part = Value::Object(Map::new());
                    true
                }
                _ => fields.remove(key).is_some(),
            }
        }
        (Segment::Seq { index }, Value::Array(list)) => {
            let Some(part) = list.get_mut(*index) else { return false };
            leave_out(part, inner) || {
                list.remove(*index);
                true
            }
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;
    use soroi_api::kueue::{ClusterQueue, Workload};

    use super::*;

    fn check<T: DeserializeOwned + serde::Serialize>(object: Value, expected: Expect) {
        let told = match read::<T>(object) {
            Ok((read, invalid)) => {
                let read = serde_json::to_value(read).unwrap();
                let invalid = invalid.map_or("nothing".into(), |invalid| invalid.to_string());
                format!("{}\nwithout {invalid}", read["spec"])
            }
            Err(invalid) => format!("unreadable: {invalid}"),
        };
        expected.assert_eq(&told);
    }

    fn workload(template: Value) -> Value {
        json!({
            "metadata": { "name": "w", "uid": "u" },
            "spec": { "queueName": "main", "podSets": [{ "name": "main", "count": 3, "template": template }] },
        })
    }

    #[test]
    fn what_cannot_be_read_is_left_out_and_named() {
        check::<Workload>(
            workload(json!({ "spec": { "containers": [] } })),
            expect![[r#"
                {"podSets":[{"count":3,"name":"main","template":{"spec":{"containers":[]}}}],"queueName":"main"}
                without nothing"#]],
        );
        check::<Workload>(
            workload(json!({ "spec": { "containers": "what", "priority": "high", "hostname": "h" } })),
            expect![[r#"
                {"podSets":[{"count":3,"name":"main","template":{"spec":{"containers":[],"hostname":"h"}}}],"queueName":"main"}
                without spec.podSets[0].template.spec.containers: invalid type: string "what", expected a sequence"#]],
        );
        check::<Workload>(
            workload(json!({ "spec": { "containers": [{ "name": "a" }, { "name": 7 }, 8] } })),
            expect![[r#"
                {"podSets":[{"count":3,"name":"main","template":{"spec":{"containers":[{"name":"a"},{"name":""}]}}}],"queueName":"main"}
                without spec.podSets[0].template.spec.containers[1].name: invalid type: integer `7`, expected a string"#]],
        );
        check::<Workload>(
            workload(json!(5)),
            expect![[r#"
            {"queueName":"main"}
            without spec.podSets[0].template: invalid type: integer `5`, expected PodTemplateSpec"#]],
        );
        check::<Workload>(
            json!({ "metadata": { "name": "w" }, "spec": { "podSets": 1 } }),
            expect![[r#"
                {}
                without spec.podSets: invalid type: integer `1`, expected a sequence"#]],
        );
        check::<Workload>(
            json!({ "metadata": { "name": "w" }, "spec": [] }),
            expect![[r#"
            {}
            without spec: invalid length 2, expected struct WorkloadSpec with 7 elements"#]],
        );
        check::<Workload>(
            json!({ "metadata": 1, "spec": {} }),
            expect!["unreadable: metadata: invalid type: integer `1`, expected ObjectMeta"],
        );
        check::<Workload>(
            json!([]),
            expect!["unreadable: spec: invalid length 0, expected struct Workload with 3 elements"],
        );
        check::<ClusterQueue>(
            json!({ "metadata": { "name": "q" }, "spec": { "cohortName": "all", "resourceGroups": [{
                "coveredResources": ["cpu"],
                "flavors": [{ "name": "f", "resources": [{ "name": "cpu", "nominalQuota": [] }] }],
            }]}}),
            expect![[r#"
                {"cohortName":"all","resourceGroups":[{"coveredResources":["cpu"],"flavors":[{"name":"f","resources":[]}]}]}
                without spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: invalid type: sequence, expected a quantity (an integer or a string)"#]],
        );
    }
}
