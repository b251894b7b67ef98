//! Who are pods, if nobody says? The `default` ServiceAccount of every namespace, as
//! kube-controller-manager makes it (and makes it again).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use serde::Deserialize;
use serde_json::json;
use soroi_clock::Clock;
use soroi_watch::{Query, SplitMix64};

use crate::cache::{Cache, Key, Seen};
use crate::due::{Due, after, wait_until};
use crate::seen::Meta;
use crate::write::{Api, Flight, Outcome, Request};

const IN_FLIGHT: usize = 4;
const RETRY: Duration = Duration::from_secs(1);
const NAME: &str = "default";

/// A namespace or an account: its metadata is all that matters.
#[derive(Debug, Deserialize)]
struct Thing {
    metadata: Meta,
}

impl Seen for Thing {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// Makes accounts, for ever.
pub(crate) async fn run(api: Api, client: kube::Client, clock: Clock, seed: u64) {
    let mut random = SplitMix64::new(seed);
    let mut watch = |path: &str| {
        let query = Query::path(path);
        soroi_watch::watch_map(client.clone(), clock.clone(), query, random.next_u64(), Arc::<Thing>::new)
    };
    let (mut changes, mut made_changes) = (watch("/api/v1/namespaces"), watch("/api/v1/serviceaccounts"));
    let (mut namespaces, mut accounts) = (Cache::default(), Cache::default());
    let mut flight: Flight<String> = Flight::new(api, IN_FLIGHT);
    let mut due: Due<String> = Due::default();
    let mut asked: BTreeSet<String> = BTreeSet::new();
    loop {
        let ready = namespaces.synced() && accounts.synced();
        while ready && flight.has_room() {
            let Some(name) = due.pop(clock.now()) else { break };
            let namespace: Option<&Arc<Thing>> = namespaces.get(&Key::new("", name.clone()));
            let wanted = namespace.is_some_and(|namespace| namespace.metadata.deleting.is_none());
            if wanted && accounts.get(&Key::new(name.clone(), NAME)).is_none() && asked.insert(name.clone()) {
                let account =
                    json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": NAME } });
                let path = format!("/api/v1/namespaces/{name}/serviceaccounts");
                flight.push(name, Request::post(path, account));
            }
        }
        let wake = due.next().filter(|_| ready && flight.has_room());
        tokio::select! {
            biased;
            Some(change) = changes.next() => {
                for turn in namespaces.apply(change) {
                    due.add(turn.key.name, clock.now());
                }
            }
            Some(change) = made_changes.next() => {
                for turn in accounts.apply(change) {
                    if turn.key.name == NAME {
                        asked.remove(&turn.key.namespace);
                        due.add(turn.key.namespace, clock.now());
                    }
                }
            }
            (name, outcome) = flight.next() => {
                if let Outcome::Refused { .. } | Outcome::Lost(_) = outcome {
                    asked.remove(&name);
                    due.add(name, after(clock.now(), RETRY));
                }
            }
            () = wait_until(&clock, wake) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Parts;
    use crate::story::{Story, tell};

    #[test]
    fn every_namespace_has_a_default_account_again_and_again() {
        let told = tell(Parts { accounts: true, ..Parts::NONE }, async |story: Story| {
            let namespace =
                json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "team-a" } });
            story.create("/api/v1/namespaces", namespace).await;
            story.seconds(1).await;
            let path = "/api/v1/namespaces/team-a/serviceaccounts/default";
            let first = story.get(path).await["metadata"]["uid"].take();
            story.delete(path).await;
            story.seconds(1).await;
            let second = story.get(path).await["metadata"]["uid"].take();
            format!("made again: {}", first.is_string() && second.is_string() && first != second)
        });
        assert_eq!(told, "made again: true");
    }
}
