//! Which types are there? Discovery, as far as the garbage collector needs it.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::cache::Key;
use crate::seen::read;
use crate::write::{Api, Outcome, Request};

/// A type that can be listed, watched and deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resource {
    /// `v1`, or `group/version`.
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
}

impl Resource {
    pub(crate) fn group(&self) -> &str {
        self.api_version.rsplit_once('/').map_or("", |(group, _)| group)
    }

    /// The path of the collection, in one namespace or in all.
    pub(crate) fn collection(&self, namespace: Option<&str>) -> String {
        let root = if self.group().is_empty() { "/api" } else { "/apis" };
        let (version, plural) = (&self.api_version, &self.plural);
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{root}/{version}/namespaces/{namespace}/{plural}"),
            None => format!("{root}/{version}/{plural}"),
        }
    }

    /// The path of an object; the namespace counts only if there is one.
    pub(crate) fn object(&self, key: &Key) -> String {
        format!("{}/{}", self.collection(Some(&key.namespace)), key.name)
    }
}

/// What could be found out.
#[derive(Debug, Default)]
pub(crate) struct Discovered {
    pub(crate) resources: Vec<Resource>,
    /// No group failed to answer.
    pub(crate) complete: bool,
}

#[derive(Deserialize)]
struct Groups {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    preferred_version: Version,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    group_version: String,
}

#[derive(Deserialize)]
struct Resources {
    resources: Vec<Described>,
}

#[derive(Deserialize)]
struct Described {
    name: String,
    kind: String,
    namespaced: bool,
    verbs: Vec<String>,
}

/// Asks for every type in its preferred version. Events are left out: they own nothing, nobody
/// owns them, and they are many.
pub(crate) async fn all(api: &Api) -> Discovered {
    let mut found = Discovered { resources: Vec::new(), complete: true };
    let Some(groups) = ask::<Groups>(api, "/apis").await else {
        return Discovered::default();
    };
    let versions = groups.groups.into_iter().map(|group| group.preferred_version.group_version);
    for version in std::iter::once("v1".to_owned()).chain(versions) {
        if version.starts_with("events.k8s.io/") {
            continue;
        }
        let root = if version == "v1" { "/api" } else { "/apis" };
        let Some(described) = ask::<Resources>(api, &format!("{root}/{version}")).await else {
            found.complete = false;
            continue;
        };
        let usable = described.resources.into_iter().filter(|resource| {
            let can = |verb: &str| resource.verbs.iter().any(|other| other == verb);
            can("delete")
                && can("list")
                && can("watch")
                && !resource.name.contains('/')
                && resource.name != "events"
        });
        found.resources.extend(usable.map(|resource| Resource {
            api_version: version.clone(),
            kind: resource.kind,
            plural: resource.name,
            namespaced: resource.namespaced,
        }));
    }
    found
}

async fn ask<T: DeserializeOwned>(api: &Api, path: &str) -> Option<T> {
    match api.send(Request::get(path)).await {
        Outcome::Done(body) => read(&body),
        _ => None,
    }
}
