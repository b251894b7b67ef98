//! What of a picture is compared, and where do two differ?

use serde_json::{Map, Value, json};

/// Texts, and numbers that a controller refreshes when it has time.
const SOFT: [&str; 3] = ["message", "reason", "share"];

/// How much of a picture is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// States, assignments, and evictions with their reason and preemptor.
    Decisions,
    /// The counters of ClusterQueues, too.
    Status,
    /// Everything: messages and shares, too.
    All,
}

impl View {
    /// The view of this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "decisions" => Some(Self::Decisions),
            "status" => Some(Self::Status),
            "all" => Some(Self::All),
            _ => None,
        }
    }

    /// The part of a picture that it compares.
    pub fn of(self, picture: &Value) -> Value {
        if self == Self::All {
            return picture.clone();
        }
        let mut part = json!({
            "workloads": hard(&picture["workloads"]),
            "evictions": once(&picture["evictions"]),
        });
        if self == Self::Status {
            part["clusterQueues"] = hard(&picture["clusterQueues"]);
        }
        part
    }
}

fn hard(entries: &Value) -> Value {
    let strip = |entry: &Value| {
        let fields = entry.as_object().into_iter().flatten();
        let kept = fields.filter(|(key, _)| !SOFT.contains(&key.as_str()));
        Value::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect())
    };
    let entries = entries.as_object().into_iter().flatten();
    Value::Object(entries.map(|(name, entry)| (name.clone(), strip(entry))).collect::<Map<_, _>>())
}

/// Evictions without texts, and without repeats that only show timing: a deactivated Workload may get
/// its condition twice.
fn once(evictions: &Value) -> Value {
    let mut kept: Vec<Value> = Vec::new();
    for eviction in evictions.as_array().into_iter().flatten() {
        let mut eviction = eviction.clone();
        if let Some(fields) = eviction.as_object_mut() {
            fields.remove("message");
        }
        if eviction["reason"] == "Preempted" || !kept.contains(&eviction) {
            kept.push(eviction);
        }
    }
    kept.into()
}

/// The first difference as text; `"*"` where anything was recorded to go.
pub fn difference(expected: &Value, seen: &Value) -> Option<String> {
    at("", expected, seen)
}

fn at(path: &str, expected: &Value, seen: &Value) -> Option<String> {
    if *expected == "*" || expected == seen {
        return None;
    }
    let told = |path: &str, expected: &Value, seen: &Value| {
        Some(format!("{path}: expected {}, got {}", short(expected), short(seen)))
    };
    match (expected, seen) {
        (Value::Object(old), Value::Object(new)) => {
            let keys = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)));
            keys.filter(|key| old.get(*key).is_none_or(|value| *value != "*")).find_map(|key| {
                let path = format!("{path}/{key}");
                match (old.get(key), new.get(key)) {
                    (Some(old), Some(new)) => at(&path, old, new),
                    (old, new) => told(&path, old.unwrap_or(&Value::Null), new.unwrap_or(&Value::Null)),
                }
            })
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            let mut pairs = old.iter().zip(new).enumerate();
            pairs.find_map(|(index, (old, new))| at(&format!("{path}[{index}]"), old, new))
        }
        _ => told(path, expected, seen),
    }
}

fn short(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named_with_its_path() {
        let old = json!({"workloads": {"a": {"state": "pending", "message": "*"}}, "evictions": []});
        let mut new = json!({"workloads": {"a": {"state": "pending", "message": "x"}}, "evictions": []});
        assert_eq!(difference(&old, &new), None);
        new["workloads"]["a"]["state"] = "admitted".into();
        let told = difference(&old, &new).unwrap();
        assert_eq!(told, "/workloads/a/state: expected \"pending\", got \"admitted\"");
        new["workloads"] = json!({});
        assert!(difference(&old, &new).unwrap().starts_with("/workloads/a: expected {"));
    }

    #[test]
    fn texts_and_repeats_are_no_decisions() {
        let old = json!({
            "workloads": {"a": {"state": "pending", "message": "one", "reason": "Pending"}},
            "evictions": [{"workload": "a", "reason": "Deactivated", "message": "one"}],
        });
        let new = json!({
            "workloads": {"a": {"state": "pending", "message": "two"}},
            "evictions": [
                {"workload": "a", "reason": "Deactivated", "message": "two"},
                {"workload": "a", "reason": "Deactivated", "message": "three"},
            ],
        });
        let decisions = View::Decisions;
        assert_eq!(difference(&decisions.of(&old), &decisions.of(&new)), None);
        assert!(difference(&View::All.of(&old), &View::All.of(&new)).is_some());
    }
}
