//! Where the pods of a template must be relative to each other: one wish, spelt so that it can mean
//! something.
//!
//! The rules are Kueue's (0.19, `pkg/controller/jobframework/tas_validation.go`). That levels of
//! slices become finer only the Topology can tell, which is not known here.

use serde_json::{Value, json};
use soroi_api::labels::kueue as keys;
use soroi_api::syntax::{LABEL_KEY_WORDS, is_label_key};

use crate::field::Findings;
use crate::json::{annotation, items};

fn path(key: &str) -> String {
    format!("spec.template.metadata.annotations[{key}]")
}

/// Of a template with so many pods, which is all that its Workload consists of if it is `alone`.
pub(crate) fn of_template(template: &Value, pods: i64, alone: bool, findings: &mut Findings) {
    let get = |key| annotation(template, key);
    let wishes = [
        keys::PODSET_REQUIRED_TOPOLOGY,
        keys::PODSET_PREFERRED_TOPOLOGY,
        keys::PODSET_UNCONSTRAINED_TOPOLOGY,
    ];
    let made: Vec<&str> = wishes.into_iter().filter(|key| get(key).is_some()).collect();
    if let [first, second, ..] = made.as_slice() {
        findings.forbidden(path(second), format!("must not be used together with {first}"));
    }
    for key in [
        keys::PODSET_REQUIRED_TOPOLOGY,
        keys::PODSET_PREFERRED_TOPOLOGY,
        keys::PODSET_SLICE_REQUIRED_TOPOLOGY,
    ] {
        if let Some(level) = get(key).filter(|level| !is_label_key(level)) {
            findings.invalid(path(key), &level.into(), LABEL_KEY_WORDS);
        }
    }
    let anywhere = keys::PODSET_UNCONSTRAINED_TOPOLOGY;
    if let Some(word) = get(anywhere).filter(|word| !matches!(*word, "true" | "false")) {
        findings.not_supported(path(anywhere), &word.into(), &["true", "false"]);
    }
    slices(template, pods, findings);
    layers(template, pods, findings);
    group(template, alone, findings);
}

fn slices(template: &Value, pods: i64, findings: &mut Findings) {
    let (level, size) = (keys::PODSET_SLICE_REQUIRED_TOPOLOGY, keys::PODSET_SLICE_SIZE);
    match (annotation(template, level), annotation(template, size)) {
        (Some(_), None) => findings.required(path(size), format!("must be given with {level}")),
        (None, Some(_)) => findings.forbidden(path(size), format!("must not be given without {level}")),
        (Some(_), Some(text)) => match text.parse::<i32>().map(i64::from) {
            Ok(number) if number > pods => {
                let problem = format!("must not be greater than the number of pods, {pods}");
                findings.invalid(path(size), &json!(text), problem);
            }
            Ok(1..) => {}
            _ => findings.invalid(path(size), &json!(text), "must be a number of pods of at least 1"),
        },
        (None, None) => {}
    }
}

fn layers(template: &Value, pods: i64, findings: &mut Findings) {
    let key = keys::PODSET_SLICE_REQUIRED_TOPOLOGY_CONSTRAINTS;
    let Some(text) = annotation(template, key) else { return };
    for other in [keys::PODSET_SLICE_REQUIRED_TOPOLOGY, keys::PODSET_SLICE_SIZE] {
        if annotation(template, other).is_some() {
            findings.forbidden(path(key), format!("must not be used together with {other}"));
        }
    }
    let Ok(list @ Value::Array(_)) = serde_json::from_str::<Value>(text) else {
        findings.invalid(
            path(key),
            &text.into(),
            "must be a JSON array of layers, each with topology and size",
        );
        return;
    };
    let list = items(&list);
    if list.is_empty() || list.len() > keys::SLICE_LAYERS_MAX {
        findings.invalid(
            path(key),
            &text.into(),
            format!("must have 1 to {} layers", keys::SLICE_LAYERS_MAX),
        );
        return;
    }
    for (at, layer) in list.iter().enumerate() {
        let field = |name: &str| format!("{}[{at}].{name}", path(key));
        let level = layer["topology"].as_str().unwrap_or_default();
        if !is_label_key(level) {
            findings.invalid(field("topology"), &layer["topology"], LABEL_KEY_WORDS);
        } else if list[..at].iter().any(|other| other["topology"] == level) {
            findings.duplicate(field("topology"), &layer["topology"]);
        }
        let outer = at.checked_sub(1).and_then(|outer| list[outer]["size"].as_i64());
        let problem = match (layer["size"].as_i64().filter(|size| i32::try_from(*size).is_ok()), outer) {
            (None | Some(..=0), _) => "must be a number of pods of at least 1".to_owned(),
            (Some(size), None) if at == 0 && size > pods => {
                format!("must not be greater than the number of pods, {pods}")
            }
            (Some(size), Some(outer)) if outer > 0 && outer % size != 0 => {
                format!("must evenly divide the parent layer size {outer}")
            }
            _ => continue,
        };
        findings.invalid(field("size"), &layer["size"], problem);
    }
}

fn group(template: &Value, alone: bool, findings: &mut Findings) {
    let key = keys::PODSET_GROUP_NAME;
    let Some(name) = annotation(template, key) else { return };
    if alone {
        findings.invalid(path(key), &name.into(), "a group has exactly 2 pod sets, and a Job has 1");
    }
    for other in [
        keys::PODSET_SLICE_REQUIRED_TOPOLOGY,
        keys::PODSET_SLICE_SIZE,
        keys::PODSET_SLICE_REQUIRED_TOPOLOGY_CONSTRAINTS,
    ] {
        if annotation(template, other).is_some() {
            findings.forbidden(path(key), format!("must not be used together with {other}"));
        }
    }
    let (required, preferred) = (keys::PODSET_REQUIRED_TOPOLOGY, keys::PODSET_PREFERRED_TOPOLOGY);
    if annotation(template, required).is_none() && annotation(template, preferred).is_none() {
        findings.forbidden(path(key), format!("must not be used without {required} or {preferred}"));
    }
    if name.parse::<u64>().is_ok() {
        findings.invalid(path(key), &name.into(), "must not be a number");
    }
}
