//! Domains are compressed as Kueue does, and come back whole.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn domain(values: &[&str], count: i32) -> TopologyDomain {
    TopologyDomain { values: values.iter().map(|value| (*value).to_owned()).collect(), count }
}

#[test]
fn domains_are_written_as_kueue_writes_them() {
    // Seen on Kueue 0.18.1.
    let assignment = TopologyAssignment::from_domains(
        vec!["kubernetes.io/hostname".to_owned()],
        &[domain(&["kueue-volcano-test-worker"], 2), domain(&["kueue-volcano-test-worker2"], 2)],
    );
    assert_eq!(
        serde_json::to_value(&assignment).unwrap(),
        json!({
            "levels": ["kubernetes.io/hostname"],
            "slices": [{
                "domainCount": 2, "podCounts": {"universal": 2},
                "valuesPerLevel": [{"individual": {"prefix": "kueue-volcano-test-worker", "roots": ["", "2"]}}],
            }],
        })
    );
}

#[test]
fn equal_values_are_universal_and_unequal_counts_individual() {
    let assignment = TopologyAssignment::from_domains(
        vec!["block".to_owned(), "rack".to_owned()],
        &[domain(&["b1", "r1-x"], 1), domain(&["b1", "r2-x"], 3)],
    );
    assert_eq!(
        serde_json::to_value(&assignment.slices).unwrap(),
        json!([{
            "domainCount": 2, "podCounts": {"individual": [1, 3]},
            "valuesPerLevel": [
                {"universal": "b1"},
                {"individual": {"prefix": "r", "suffix": "-x", "roots": ["1", "2"]}},
            ],
        }])
    );
}

#[test]
fn several_slices_are_read_and_contradictions_named() {
    let read =
        |value: serde_json::Value| serde_json::from_value::<TopologyAssignment>(value).unwrap().domains();
    let slice = |roots: &[&str], pods: serde_json::Value| json!({"domainCount": 2, "podCounts": pods, "valuesPerLevel": [{"individual": {"roots": roots}}]});
    let two = json!({"levels": ["rack"], "slices": [
        slice(&["a", "b"], json!({"universal": 1})), slice(&["c", "d"], json!({"individual": [2, 3]})),
    ]});
    assert_eq!(
        read(two).unwrap(),
        [domain(&["a"], 1), domain(&["b"], 1), domain(&["c"], 2), domain(&["d"], 3)]
    );
    let problem = |slice: serde_json::Value| {
        read(json!({"levels": ["rack"], "slices": [slice]})).unwrap_err().to_string()
    };
    assert_eq!(
        problem(slice(&["a"], json!({"universal": 1}))),
        "topologyAssignment.slices[0]: a level has fewer values than domainCount"
    );
    assert_eq!(
        problem(slice(&["a", "b"], json!({"individual": [1]}))),
        "topologyAssignment.slices[0]: podCounts has fewer entries than domainCount"
    );
    assert_eq!(
        problem(json!({"domainCount": 1, "podCounts": {"universal": 1}, "valuesPerLevel": []})),
        "topologyAssignment.slices[0]: valuesPerLevel must have one entry per level"
    );
}

proptest! {
    #[test]
    fn any_domains_come_back(
        rows in prop::collection::vec(("[ab]{0,2}[0-9]{0,2}", "\\PC{0,4}", 1_i32..4), 0..20)
    ) {
        let domains: Vec<TopologyDomain> =
            rows.iter().map(|(block, rack, count)| domain(&[block, rack], *count)).collect();
        let levels = vec!["block".to_owned(), "rack".to_owned()];
        let assignment = TopologyAssignment::from_domains(levels, &domains);
        prop_assert_eq!(assignment.domains().unwrap(), domains);
    }
}
