//! What `strategic` promises, as tests.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn patched(original: Value, patch: Value) -> Value {
    let schema = crate::builtin::schema("", "Pod").unwrap();
    let mut object = original;
    match apply(Shape::root(Some(&schema)), &mut object, &patch) {
        Ok(()) => object,
        Err(error) => json!(format!("{} {}", error.code, error.message)),
    }
}

fn pod(containers: Value) -> Value {
    json!({"spec": {"containers": containers}})
}

#[test]
fn patches_change_objects_as_kubernetes_does() {
    let cases = [
        // Maps merge, null deletes.
        (
            json!({"metadata": {"labels": {"a": "1", "b": "2"}}}),
            json!({"metadata": {"labels": {"a": null, "c": "3"}}}),
            json!({"metadata": {"labels": {"b": "2", "c": "3"}}}),
        ),
        // Keyed lists merge by their key; new items come last.
        (
            pod(json!([{"name": "a", "image": "1"}, {"name": "b"}])),
            pod(json!([{"name": "a", "image": "2"}, {"name": "c"}])),
            pod(json!([{"name": "a", "image": "2"}, {"name": "b"}, {"name": "c"}])),
        ),
        // An item can be deleted by its key.
        (
            pod(json!([{"name": "a"}, {"name": "b"}])),
            pod(json!([{"name": "a", "$patch": "delete"}])),
            pod(json!([{"name": "b"}])),
        ),
        // A list can be replaced.
        (
            pod(json!([{"name": "a"}, {"name": "b"}])),
            pod(json!([{"$patch": "replace"}, {"name": "c"}])),
            pod(json!([{"name": "c"}])),
        ),
        // Ports are told apart by their number.
        (
            pod(json!([{"name": "a", "ports": [{"containerPort": 1, "name": "x"}]}])),
            pod(json!([{"name": "a", "ports": [{"containerPort": 1, "name": "y"}, {"containerPort": 2}]}])),
            pod(json!([{"name": "a", "ports": [{"containerPort": 1, "name": "y"}, {"containerPort": 2}]}])),
        ),
        // Tolerations have no key: the list is replaced.
        (
            json!({"spec": {"tolerations": [{"key": "a"}]}}),
            json!({"spec": {"tolerations": [{"key": "b"}]}}),
            json!({"spec": {"tolerations": [{"key": "b"}]}}),
        ),
        // Finalizers are a set.
        (
            json!({"metadata": {"finalizers": ["a", "b"]}}),
            json!({"metadata": {"finalizers": ["b", "c"]}}),
            json!({"metadata": {"finalizers": ["a", "b", "c"]}}),
        ),
        (
            json!({"metadata": {"finalizers": ["a", "b"]}}),
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}),
            json!({"metadata": {"finalizers": ["b"]}}),
        ),
        // A map can be replaced or emptied.
        (
            json!({"spec": {"nodeSelector": {"a": "1"}}}),
            json!({"spec": {"nodeSelector": {"$patch": "replace", "b": "2"}}}),
            json!({"spec": {"nodeSelector": {"b": "2"}}}),
        ),
        (
            json!({"spec": {"nodeSelector": {"a": "1"}, "x": 1}}),
            json!({"spec": {"nodeSelector": {"$patch": "delete"}}}),
            json!({"spec": {"x": 1}}),
        ),
        // Only the retained keys of a volume stay.
        (
            json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}),
            json!({"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]}}),
            json!({"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}}),
        ),
        // The order that the patch gives; strangers keep their place.
        (
            pod(json!([{"name": "a"}, {"name": "x"}, {"name": "b"}])),
            json!({"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": [{"name": "a", "image": "1"}]}}),
            pod(json!([{"name": "x"}, {"name": "b"}, {"name": "a", "image": "1"}])),
        ),
        // Conditions merge by type.
        (
            json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
            json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}),
            json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}),
        ),
        // What is new comes without directives and nulls.
        (
            json!({}),
            json!({"spec": {"a": null, "containers": [{"name": "a", "$patch": "delete"}, {"name": "b", "image": null}]}}),
            pod(json!([{"name": "b"}])),
        ),
        // What makes no sense is refused.
        (
            pod(json!([{"name": "a"}])),
            pod(json!([{"image": "1"}])),
            json!("500 map: {\"image\":\"1\"} does not contain declared merge key: name"),
        ),
        (
            json!({}),
            json!({"spec": {"$patch": "twist"}}),
            json!("400 unknown patch type: \"twist\" in map: {\"$patch\":\"twist\"}"),
        ),
    ];
    for (original, patch, expected) in cases {
        assert_eq!(patched(original.clone(), patch.clone()), expected, "{original} patched with {patch}");
    }
}

/// Any JSON, with the directives among its keys.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3i64).prop_map(Value::from),
        "[ab]".prop_map(Value::from),
        Just(json!("replace")),
        Just(json!("delete")),
    ];
    let key = prop_oneof![
        Just("spec"),
        Just("containers"),
        Just("name"),
        Just("finalizers"),
        Just("metadata"),
        Just("ports"),
        Just(PATCH),
        Just(RETAIN),
        Just("$setElementOrder/containers"),
        Just("$deleteFromPrimitiveList/finalizers"),
    ];
    leaf.prop_recursive(5, 32, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..5)
                .prop_map(|pairs| pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
        ]
    })
}

proptest! {
    #[test]
    fn no_patch_panics_or_leaves_directives(original in anything(), patch in anything()) {
        let clean = stripped(&original);
        if clean.is_object() {
            let result = patched(clean, patch);
            // Plain values that look like directives are data; keys are not.
            fn keys(value: &Value) -> bool {
                match value {
                    Value::Object(f) => f.iter().all(|(k, v)| !k.starts_with('$') && keys(v)),
                    _ => true,
                }
            }
            prop_assert!(keys(&result), "{result}");
        }
    }

    #[test]
    fn a_patch_applied_twice_changes_nothing_more(
        labels in prop::collection::btree_map("[a-c]", prop::option::of("[xy]"), 0..3),
        names in prop::collection::btree_map("[a-c]", "[xy]", 0..3),
    ) {
        let containers: Vec<Value> = names.iter().map(|(n, i)| json!({"name": n, "image": i})).collect();
        let patch = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
        let original = json!({"metadata": {"labels": {"a": "1"}}, "spec": {"containers": [{"name": "b"}]}});
        let once = patched(original, patch.clone());
        prop_assert_eq!(patched(once.clone(), patch), once);
    }
}
