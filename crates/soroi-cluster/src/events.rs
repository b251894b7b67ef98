//! What is told to people: Events, counted when repeated, and never a flood.
//!
//! As client-go's broadcaster does it: a repeated message raises the count of its Event, and one
//! object gets a burst of 25, then one every five minutes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use crate::cache::Key;
use crate::seen::Meta;
use crate::write::Request;

/// Events that one object gets at once (client-go's spam filter).
const BURST: i64 = 25;
/// Afterwards one event in so many seconds.
const REFILL_SECS: i64 = 300;
/// Objects and messages remembered; beyond it all is forgotten, and counts start anew.
const REMEMBERED_MAX: usize = 4096;

/// Normal, or something to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Normal,
    Warning,
}

/// What an event is about.
pub(crate) struct About<'a> {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) meta: &'a Meta,
}

impl<'a> About<'a> {
    pub(crate) fn pod(meta: &'a Meta) -> Self {
        Self { api_version: "v1", kind: "Pod", meta }
    }

    pub(crate) fn node(meta: &'a Meta) -> Self {
        Self { api_version: "v1", kind: "Node", meta }
    }

    pub(crate) fn job(meta: &'a Meta) -> Self {
        Self { api_version: "batch/v1", kind: "Job", meta }
    }
}

/// Turns what a part has to say into requests.
pub(crate) struct Recorder {
    component: &'static str,
    allowance: BTreeMap<String, Allowance>,
    /// By uid, reason and message: the event's name and how often it was said.
    said: BTreeMap<(String, String, String), (Key, i64)>,
    /// Makes names differ that are made at the same moment.
    serial: u64,
}

struct Allowance {
    left: i64,
    refilled: Timestamp,
}

impl Recorder {
    pub(crate) fn new(component: &'static str) -> Self {
        Self { component, allowance: BTreeMap::new(), said: BTreeMap::new(), serial: 0 }
    }

    /// The request that tells it; none while the object has been talked about too much.
    pub(crate) fn record(
        &mut self,
        now: Timestamp,
        about: &About<'_>,
        level: Level,
        reason: &str,
        message: &str,
    ) -> Option<Request> {
        if !self.allowed(&about.meta.uid, now) {
            return None;
        }
        if self.said.len() >= REMEMBERED_MAX {
            self.said.clear();
        }
        let place = (about.meta.uid.clone(), reason.to_owned(), message.to_owned());
        if let Some((key, count)) = self.said.get_mut(&place) {
            *count += 1;
            let path = format!("/api/v1/namespaces/{}/events/{}", key.namespace, key.name);
            return Some(Request::merge(path, json!({ "count": *count, "lastTimestamp": Time(now) })));
        }
        let Key { namespace, name } = &about.meta.key;
        // Events about cluster-scoped objects live in `default`, as client-go puts them.
        let home = if namespace.is_empty() { "default" } else { namespace };
        self.serial += 1;
        let stamp = now.as_microsecond().unsigned_abs().wrapping_mul(1000).wrapping_add(self.serial % 1000);
        let event = format!("{name}.{stamp:x}");
        self.said.insert(place, (Key::new(home, event.clone()), 1));
        let level = match level {
            Level::Normal => "Normal",
            Level::Warning => "Warning",
        };
        let body = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": { "name": event, "namespace": home },
            "involvedObject": {
                "apiVersion": about.api_version, "kind": about.kind,
                "namespace": namespace, "name": name, "uid": about.meta.uid,
            },
            "type": level,
            "reason": reason,
            "message": message,
            "count": 1,
            "firstTimestamp": Time(now),
            "lastTimestamp": Time(now),
            "source": { "component": self.component },
            "reportingComponent": self.component,
            "reportingInstance": "",
        });
        Some(Request::post(format!("/api/v1/namespaces/{home}/events"), body))
    }

    fn allowed(&mut self, uid: &str, now: Timestamp) -> bool {
        if self.allowance.len() >= REMEMBERED_MAX && !self.allowance.contains_key(uid) {
            self.allowance.clear();
        }
        let fresh = || Allowance { left: BURST, refilled: now };
        let allowance = self.allowance.entry(uid.to_owned()).or_insert_with(fresh);
        let refill = now.duration_since(allowance.refilled).as_secs() / REFILL_SECS;
        if refill > 0 {
            allowance.left = allowance.left.saturating_add(refill).min(BURST);
            allowance.refilled = now;
        }
        let allowed = allowance.left > 0;
        allowance.left -= i64::from(allowed);
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_counted_and_a_flood_is_cut_off() {
        let meta = Meta { key: Key::new("d", "p"), uid: "u".into(), ..Meta::default() };
        let mut recorder = Recorder::new("kubelet");
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut say = |second, message: &str| {
            recorder.record(at(second), &About::pod(&meta), Level::Warning, "Bad", message)
        };
        let first = format!("{:?}", say(0, "one").unwrap());
        assert!(first.contains("POST") && first.contains("\"one\""), "{first}");
        let again = format!("{:?}", say(0, "one").unwrap());
        assert!(again.contains("PATCH") && again.contains("\"count\": Number(2)"), "{again}");
        assert_eq!((0..100).filter(|n| say(1, &n.to_string()).is_some()).count(), 23);
        assert!(say(301, "later").is_some() && say(301, "too much").is_none());
    }
}
