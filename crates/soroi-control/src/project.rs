//! What shall the world read and do? Turns decisions and facts into objects, statuses and patches.
//!
//! Pure, like intake, and its mirror: state in, JSON out. Knows the form in which Kubernetes, Kueue
//! and Volcano expect things, down to the wording. Never knows a client or a clock, and decides
//! nothing: a caller that writes what it gets here writes what was decided.
//!
//! | what | where |
//! |---|---|
//! | Workload of a Job or PodGroup | [`workload`] |
//! | Workload status: admission and conditions | [`status`] |
//! | Job: release, suspend, restore | [`job`] |
//! | Pod: binding, condition, gate | [`pod`] |
//! | ClusterQueue and LocalQueue status | [`queue`] |
//! | PodGroup status | [`group`] |
//! | GangPlan | [`plan`] |

use serde_json::{Map, Value};

pub mod dialect;
pub mod group;
pub mod job;
pub mod plan;
pub mod pod;
pub mod queue;
pub mod status;
pub mod workload;

/// The merge patch (RFC 7386) that turns one value into another; `None` if they are equal. Objects
/// are compared key by key, everything else as a whole.
pub fn merge_patch(old: &Value, new: &Value) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (old, new) else {
        return (old != new).then(|| new.clone());
    };
    let mut patch = Map::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new {
        let change = match old.get(key) {
            Some(before) => merge_patch(before, value),
            None => Some(value.clone()),
        };
        if let Some(change) = change {
            patch.insert(key.clone(), change);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// The merge patch for a status that was computed from one that was read: `None` if it says the
/// same already. With the resourceVersion that was read it fails with a conflict where the object
/// has changed since. (`before` absent: the object has no status yet.)
pub fn status_patch<T: serde::Serialize>(
    resource_version: Option<&str>,
    before: Option<&T>,
    after: &T,
) -> Option<Value> {
    let json =
        |status: &T| serde_json::to_value(status).expect("a status is made of strings, numbers and maps");
    let before = before.map_or_else(|| Value::Object(Map::new()), json);
    let change = merge_patch(&before, &json(after))?;
    let mut patch = Map::new();
    if let Some(version) = resource_version {
        patch.insert("metadata".into(), serde_json::json!({"resourceVersion": version}));
    }
    patch.insert("status".into(), change);
    Some(Value::Object(patch))
}

/// Steps of a JSON patch (RFC 6902).
#[derive(Default)]
pub(crate) struct Steps(Vec<json_patch::PatchOperation>);

impl Steps {
    /// Fails the whole patch unless this value is there.
    pub(crate) fn test(mut self, path: &str, value: impl Into<Value>) -> Self {
        let path = pointer(path);
        self.0
            .push(json_patch::PatchOperation::Test(json_patch::TestOperation { path, value: value.into() }));
        self
    }

    /// Sets a value, whatever was there.
    pub(crate) fn set(mut self, path: &str, value: impl Into<Value>) -> Self {
        let path = pointer(path);
        self.0.push(json_patch::PatchOperation::Add(json_patch::AddOperation { path, value: value.into() }));
        self
    }

    /// Sets a value, or takes it away when there is nothing to set. (Removing what is not there
    /// would fail the patch, so it is set first.)
    pub(crate) fn set_or_remove(self, path: &str, value: Value) -> Self {
        let empty = match &value {
            Value::Null => true,
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        };
        let mut steps = self.set(path, value);
        if empty {
            let path = pointer(path);
            steps.0.push(json_patch::PatchOperation::Remove(json_patch::RemoveOperation { path }));
        }
        steps
    }

    /// The patch.
    pub(crate) fn patch(self) -> json_patch::Patch {
        json_patch::Patch(self.0)
    }
}

fn pointer(path: &str) -> json_patch::jsonptr::PointerBuf {
    path.parse().expect("paths are written here, with their slashes")
}

#[cfg(test)]
mod tests;
