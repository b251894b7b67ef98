//! Does a gang's record outlive its pods? Asked when a plan is gone.
//!
//! While a member of it is on a node that answers, the plan stands: a restart knows of its quota by that alone.
//! Knows plans and pods as the API shows them.

use jiff::Timestamp;
use serde_json::Value;

use super::late;
use crate::kind;
use crate::world::{Changed, World, has_ended, is_true, text};

/// What is wrong with a plan's end.
pub(super) fn check(world: &World, changed: &Changed, now: Timestamp) -> Option<String> {
    let key = &changed.key;
    let plan = changed.before.as_ref().filter(|_| world.get(key.0, &key.1, &key.2).is_none())?;
    let owners: Vec<&str> =
        plan["spec"]["owners"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let of_it = |pod: &&Value| {
        let each = pod["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        pod["metadata"]["namespace"] == key.1.as_str()
            && each.into_iter().any(|owner| owners.contains(&text(&owner["uid"])))
    };
    let on_node = |pod: &&Value| {
        let node = pod["spec"]["nodeName"].as_str().and_then(|name| world.get(kind::NODE, "", name));
        node.is_some_and(|node| is_true(node, "Ready")) && !has_ended(pod) && !late::is_late(world, pod, now)
    };
    let left = world.all(kind::POD).filter(of_it).find(on_node)?;
    let (gang, pod) = (text(&plan["spec"]["gang"]["name"]), text(&left["metadata"]["name"]));
    Some(format!("the plan of {gang} is gone and its pod {pod} runs"))
}
