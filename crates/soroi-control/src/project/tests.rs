//! Patches in general.

use serde_json::json;

use super::*;

#[test]
fn a_merge_patch_says_what_is_new_and_what_is_gone() {
    let old = json!({"a": 1, "b": {"c": [1, 2], "d": 3}, "e": 5});
    let new = json!({"a": 1, "b": {"c": [2], "d": 3}, "f": 6});
    let patch = merge_patch(&old, &new).unwrap();
    assert_eq!(patch, json!({"b": {"c": [2]}, "e": null, "f": 6}));
    let mut patched = old.clone();
    json_patch::merge(&mut patched, &patch);
    assert_eq!(patched, new);
    assert_eq!(merge_patch(&new, &new), None);
}

#[test]
fn setting_works_whatever_was_there() {
    let patch = || {
        Steps::default()
            .test("/uid", "u")
            .set_or_remove("/labels", json!({}))
            .set_or_remove("/gates", json!(["g"]))
            .patch()
    };
    for before in [json!({"uid": "u"}), json!({"uid": "u", "labels": {"a": "b"}, "gates": []})] {
        let mut object = before;
        json_patch::patch(&mut object, &patch()).unwrap();
        assert_eq!(object, json!({"uid": "u", "gates": ["g"]}));
    }
    assert!(json_patch::patch(&mut json!({"uid": "another"}), &patch()).is_err());
}
