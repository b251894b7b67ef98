//! Bodies in Protobuf, as kubectl sends them and as nobody should.

use proptest::prelude::*;
use serde_json::json;

use super::{MESSAGES, object};

/// A field that holds bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut all = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
    all.extend_from_slice(bytes);
    all
}

fn number(field: u8, number: u8) -> Vec<u8> {
    vec![field << 3, number]
}

fn body(version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let meta = [field(1, version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &meta), field(2, raw), field(3, b""), field(4, b"")].concat()
}

#[test]
fn objects_are_read_as_they_were_meant() {
    let name = field(1, &field(1, b"high"));
    let raw = [name.clone(), number(2, 100), number(3, 0), field(4, b""), field(5, b"Never")].concat();
    assert_eq!(
        object(&body("scheduling.k8s.io/v1", "PriorityClass", &raw)).unwrap(),
        json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": "high"}, "value": 100, "preemptionPolicy": "Never",
        })
    );
    let entry = [field(1, b"pods"), field(2, &field(1, b"5"))].concat();
    let raw = [name.clone(), field(2, &field(1, &entry)), field(3, b"")].concat();
    assert_eq!(object(&body("v1", "ResourceQuota", &raw)).unwrap()["spec"], json!({"hard": {"pods": "5"}}));
    let suspended = [number(10, 0), number(1, 0), field(6, b"")].concat();
    let raw = [name, field(2, &suspended)].concat();
    assert_eq!(
        object(&body("batch/v1", "Job", &raw)).unwrap()["spec"],
        json!({"suspend": false, "parallelism": 0}),
        "what is false on purpose stays"
    );
}

#[test]
fn what_is_not_known_is_refused_with_a_way_out() {
    let said = |bytes: &[u8]| object(bytes).unwrap_err().to_string();
    assert!(said(&body("v1", "Pod", b"")).contains("does not read Pod in Protobuf: send it as YAML"));
    let with_volumes = field(2, &field(6, &field(2, &field(1, b""))));
    let refused = said(&body("batch/v1", "Job", &with_volumes));
    assert!(refused.contains("Job with field 1 of PodSpec"), "{refused}");
    assert!(said(b"{}").contains("no object in Protobuf"));
    assert!(said(&body("v1", "ConfigMap", &[0x0a, 0x7f])).contains("no ConfigMap"));
}

#[test]
fn the_table_names_only_messages_that_it_has() {
    let simple = ["text", "bytes", "number", "flag", "amount", "either", "-"];
    for (message, fields) in MESSAGES.iter() {
        assert!(!fields.is_empty(), "{message}");
        for field in fields.values() {
            let known = simple.contains(&field.kind) || MESSAGES.contains_key(field.kind);
            assert!(known, "{message}.{}: {}", field.name, field.kind);
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(raw in proptest::collection::vec(any::<u8>(), 0..100)) {
        let _ = object(&raw);
        let _ = object(&[b"k8s\0".to_vec(), raw.clone()].concat());
        let _ = object(&body("batch/v1", "Job", &raw));
    }

    #[test]
    fn no_broken_message_panics(at in 0_usize..60, byte in any::<u8>(), cut in 0_usize..60) {
        let entry = [field(1, b"a"), field(2, b"b")].concat();
        let raw = [field(1, &[field(1, b"x"), field(11, &entry)].concat()), field(2, &entry)].concat();
        let mut bytes = body("v1", "ConfigMap", &raw);
        if let Some(there) = bytes.get_mut(at) { *there = byte; }
        bytes.truncate(bytes.len().saturating_sub(cut));
        let _ = object(&bytes);
    }
}
