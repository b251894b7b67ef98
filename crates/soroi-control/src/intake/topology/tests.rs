//! Every request that may be made, and what is said of those that make no sense.

use std::fmt::Write as _;

use expect_test::expect;
use serde_json::{Value, json};

use super::*;

fn said(request: Result<TopologyRequest, Invalid>) -> String {
    match request {
        Err(invalid) => invalid.to_string(),
        Ok(TopologyRequest { wish, slices, group }) => {
            let mut text = format!("{wish:?}");
            for Slice { level, size } in slices {
                let _ = write!(text, ", {size} in one {level}");
            }
            group.into_iter().for_each(|group| _ = write!(text, ", with {group}"));
            text
        }
    }
}

fn annotations(pairs: &[(&str, &str)]) -> String {
    let key = |key: &str| format!("kueue.x-k8s.io/podset-{key}");
    let all = pairs.iter().map(|(name, value)| (key(name), (*value).to_owned())).collect();
    said(of_annotations(Some(&all)))
}

#[test]
fn annotations_of_a_template() {
    let level = ("slice-required-topology", "rack");
    let layers = "slice-required-topology-constraints";
    let cases: &[&[(&str, &str)]] = &[
        &[],
        &[("required-topology", "rack")],
        &[("required-topology", "block"), level, ("slice-size", "4")],
        &[level, ("slice-size", "4")],
        &[("required-topology", "rack"), ("preferred-topology", "rack")],
        &[("required-topology", "rack"), ("group-name", "all")],
        &[("group-name", "all")],
        &[("preferred-topology", "rack"), ("group-name", "7")],
        &[("required-topology", "block"), level, ("slice-size", "4"), ("group-name", "all")],
        &[level],
        &[("slice-size", "4")],
        &[level, ("slice-size", "0")],
        &[level, ("slice-size", "99999999999")],
        &[level, ("slice-size", "four")],
        &[(layers, r#"[{"topology":"block","size":8},{"topology":"rack","size":4}]"#)],
        &[(layers, r#"[{"topology":"block","size":8},{"topology":"rack","size":3}]"#)],
        &[(layers, r#"[{"topology":"rack","size":8},{"topology":"rack","size":4}]"#)],
        &[(layers, "[]")],
        &[(layers, "rack")],
        &[(layers, r#"[{"topology":"rack","size":4}]"#), level, ("slice-size", "4")],
    ];
    let table: String = cases.iter().map(|case| annotations(case) + "\n").collect();
    expect![[r#"
        None
        Required("rack")
        Required("block"), 4 in one rack
        None, 4 in one rack
        annotations: must not contain more than one topology request
        Required("rack"), with all
        annotations[kueue.x-k8s.io/podset-group-name]: needs a required or a preferred level
        annotations[kueue.x-k8s.io/podset-group-name]: must not be a number
        annotations[kueue.x-k8s.io/podset-group-name]: must not be given together with slices
        annotations[kueue.x-k8s.io/podset-slice-size]: must be given with the slices' level
        annotations[kueue.x-k8s.io/podset-slice-size]: must not be given without the slices' level
        annotations[kueue.x-k8s.io/podset-slice-size]: 0 must be a number of pods of at least 1
        annotations[kueue.x-k8s.io/podset-slice-size]: 99999999999 must be a number of pods of at least 1
        annotations[kueue.x-k8s.io/podset-slice-size]: "four" is no whole number
        None, 8 in one block, 4 in one rack
        annotations[kueue.x-k8s.io/podset-slice-required-topology-constraints][1].size: must evenly divide the parent layer size 8
        annotations[kueue.x-k8s.io/podset-slice-required-topology-constraints][1].topology: is named twice
        annotations[kueue.x-k8s.io/podset-slice-required-topology-constraints]: must have 1 to 3 layers
        annotations[kueue.x-k8s.io/podset-slice-required-topology-constraints]: must be a JSON array of layers: expected value at line 1 column 1
        annotations[kueue.x-k8s.io/podset-slice-required-topology-constraints]: must be the only thing said about slices
    "#]].assert_eq(&table);
}

#[test]
fn requests_of_a_pod_set() {
    let said = |request: Value| {
        let request: kueue::PodSetTopologyRequest = serde_json::from_value(request).unwrap();
        said(of_pod_set(Some(&request)))
    };
    let layers = json!([{ "topology": "block", "size": 8 }, { "topology": "rack", "size": 4 }]);
    let cases = [
        json!({ "required": "rack", "podSetGroupName": "all" }),
        json!({ "required": "block", "podSetSliceRequiredTopology": "rack", "podSetSliceSize": 2 }),
        json!({ "podSetSliceRequiredTopology": "rack", "podSetSliceSize": -2 }),
        json!({ "podSetSliceSize": 2 }),
        json!({ "podsetSliceRequiredTopologyConstraints": layers }),
        json!({ "required": "rack", "unconstrained": true }),
        json!({ "unconstrained": true, "podSetGroupName": "all" }),
    ];
    let table: String = cases.into_iter().map(|case| said(case) + "\n").collect();
    expect![[r#"
        Required("rack"), with all
        Required("block"), 2 in one rack
        topologyRequest.podSetSliceSize: -2 must be a number of pods of at least 1
        topologyRequest.podSetSliceSize: must not be given without the slices' level
        None, 8 in one block, 4 in one rack
        topologyRequest: must not contain more than one topology request
        topologyRequest.podSetGroupName: needs a required or a preferred level
    "#]]
    .assert_eq(&table);
}
