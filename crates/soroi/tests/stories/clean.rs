//! A control plane as it was before a story: every object of a kind that stories know is taken away.
//!
//! Knows which objects belong to the control plane itself.

use std::time::Duration;

use http::Request;
use serde_json::Value;
use soroi_clock::Clock;
use soroi_testkit::api::Hands;
use soroi_testkit::kind::{self, KINDS, Kind};
use soroi_testkit::scenario::Ref;

/// How long it may take: a namespace is emptied by a controller first.
const MOST: Duration = Duration::from_secs(30);
const TICK: Duration = Duration::from_millis(100);
const NODE_LEASES: Kind = Kind {
    word: "lease",
    group: "coordination.k8s.io",
    version: "v1",
    kind: "Lease",
    plural: "leases",
    namespaced: true,
};

/// Deletes everything, while the product runs and lets go of what it holds.
///
/// # Errors
/// What is still there after a while.
pub async fn clean(client: &kube::Client, clock: &Clock) -> Result<(), String> {
    let hands = Hands::new(client.clone());
    let until = clock.now() + MOST;
    let mut asked = std::collections::BTreeSet::new();
    loop {
        let mut left = Vec::new();
        // From what depends on others to what others depend on.
        for kind in KINDS.iter().rev().chain([&NODE_LEASES]) {
            left.extend(objects(client, *kind).await?);
        }
        if left.is_empty() {
            return Ok(());
        }
        if clock.now() >= until {
            let names: Vec<String> = left.iter().map(|(target, _)| target.to_string()).collect();
            return Err(format!("still there: {}", names.join(", ")));
        }
        for (target, uid) in left {
            if asked.insert(uid) {
                hands.delete(&target).await.map_err(|error| format!("{target}: {error}"))?;
            }
        }
        clock.sleep(TICK).await;
    }
}

/// The objects of a kind that a story may have made, with their uids.
async fn objects(client: &kube::Client, kind: Kind) -> Result<Vec<(Ref, String)>, String> {
    let request = Request::get(kind.path(None)).body(Vec::new()).map_err(|error| error.to_string())?;
    let list: Value = client.request(request).await.map_err(|error| error.to_string())?;
    let items = list["items"].as_array().into_iter().flatten();
    Ok(items.filter(|object| !is_own(kind, object)).map(|object| named(kind, object)).collect())
}

fn named(kind: Kind, object: &Value) -> (Ref, String) {
    let field = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
    (Ref { kind, namespace: field("namespace"), name: field("name") }, field("uid"))
}

/// Whether it belongs to the control plane or to the product's installation.
fn is_own(kind: Kind, object: &Value) -> bool {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    match kind {
        kind::NAMESPACE => name == "default" || name == "soroi-system" || name.starts_with("kube-"),
        kind::PRIORITY_CLASS => name.starts_with("system-") || name.starts_with("soroi"),
        // The product makes them, as Volcano does.
        kind::VOLCANO_QUEUE => name == "default" || name == "root",
        NODE_LEASES => object["metadata"]["namespace"] != "kube-node-lease",
        _ => false,
    }
}
