//! Kueue's kinds: what its webhooks (0.18) say and its schemas cannot.

mod queue;
mod workload;

use serde_json::Value;
use soroi_api::labels::soroi;
use soroi_api::syntax::{LABEL_KEY_WORDS, is_label_key};

use crate::field::Findings;
use crate::json::{annotation, items};
use crate::syntax;

pub(crate) use workload::change as workload_change;

pub(crate) fn state(kind: &str, object: &Value, findings: &mut Findings) {
    match kind {
        "ClusterQueue" => queue::cluster_queue(object, findings),
        "Cohort" => queue::cohort(object, findings),
        "ResourceFlavor" => flavor(object, findings),
        "Workload" => workload::state(object, findings),
        _ => {}
    }
    for key in [soroi::PLACEMENT, soroi::PACKING] {
        if kind != "ClusterQueue" && annotation(object, key).is_some() {
            findings.warn(format!(
                "metadata.annotations[{key}]: has no effect on a {kind}; set it on the ClusterQueue"
            ));
        }
    }
}

/// A flavor's labels and taints must be ones that nodes can have.
fn flavor(flavor: &Value, findings: &mut Findings) {
    syntax::labels("spec.nodeLabels", &flavor["spec"]["nodeLabels"], findings);
    for (list, optional) in [("nodeTaints", false), ("tolerations", true)] {
        for (ix, entry) in items(&flavor["spec"][list]).iter().enumerate() {
            let key = entry["key"].as_str().unwrap_or_default();
            let left_out = optional && key.is_empty();
            if !left_out && !is_label_key(key) {
                findings.invalid(format!("spec.{list}[{ix}].key"), &entry["key"], LABEL_KEY_WORDS);
            }
        }
    }
}

#[cfg(test)]
mod tests;
