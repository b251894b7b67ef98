//! How are lists and maps put together by a merge?
//!
//! CRDs say it in their schema. For built-in kinds it is in the markers of Kubernetes' Go types,
//! which k8s-openapi does not carry; the tables below hold those of the kinds that are served.

use super::{Additional, ListType, NodeIx, Schema};

/// A place in a schema, or outside every schema.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape<'a> {
    place: Option<(&'a Schema, NodeIx)>,
    /// The field's name, which decides together with the type.
    name: &'a str,
}

/// How the items of a list are told apart by server-side apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListShape<'a> {
    /// The list is replaced as a whole.
    Atomic,
    /// Items are equal or not.
    Set,
    /// Items with the same values of these fields are the same item.
    Map(Vec<&'a str>),
}

/// Type of the items, the key of a strategic merge, the keys of an apply.
const KEYED: &[(&str, &str, &[&str])] = &[
    ("CSINodeDriver", "name", &["name"]),
    ("Container", "name", &["name"]),
    ("ContainerPort", "containerPort", &["containerPort", "protocol"]),
    ("EnvVar", "name", &["name"]),
    ("EphemeralContainer", "name", &["name"]),
    ("HostAlias", "ip", &["ip"]),
    ("HostIP", "ip", &["ip"]),
    ("NodeAddress", "type", &["type"]),
    ("OwnerReference", "uid", &["uid"]),
    ("PodIP", "ip", &["ip"]),
    ("PodResourceClaim", "name", &["name"]),
    ("PodSchedulingGate", "name", &["name"]),
    ("ServicePort", "port", &["port", "protocol"]),
    ("TopologySpreadConstraint", "topologyKey", &["topologyKey", "whenUnsatisfiable"]),
    ("Volume", "name", &["name"]),
    ("VolumeDevice", "devicePath", &["devicePath"]),
    ("VolumeMount", "mountPath", &["mountPath"]),
];

/// Types that are one value to an apply.
const ATOMIC: &[&str] = &[
    "ConfigMapKeySelector",
    "LabelSelector",
    "LocalObjectReference",
    "NodeSelector",
    "NodeSelectorTerm",
    "ObjectFieldSelector",
    "ObjectReference",
    "ResourceFieldSelector",
    "ScopeSelector",
    "SecretKeySelector",
    "SecretReference",
    "TypedLocalObjectReference",
];

impl<'a> Shape<'a> {
    /// The root of a schema, or a place where anything goes.
    pub(crate) fn root(schema: Option<&'a Schema>) -> Self {
        Self { place: schema.map(|s| (s, s.root)), name: "" }
    }

    /// The field of an object.
    pub(crate) fn field(self, name: &'a str) -> Self {
        let place = self.place.and_then(|(schema, ix)| {
            let node = &schema.nodes[ix];
            let below = node.properties.get(name).copied().or(match node.additional {
                Additional::Schema(ix) => Some(ix),
                _ => None,
            });
            below.map(|ix| (schema, ix))
        });
        Self { place, name }
    }

    /// The items of a list.
    pub(crate) fn item(self) -> Self {
        let place = self.place.and_then(|(schema, ix)| Some((schema, schema.nodes[ix].items?)));
        Self { place, name: "" }
    }

    fn type_name(self) -> &'a str {
        self.place.map_or("", |(schema, ix)| &schema.nodes[ix].name)
    }

    /// The key by which a strategic merge tells the items of this list apart; built-in kinds only.
    pub(crate) fn merge_key(self) -> Option<&'static str> {
        let item = self.item().type_name();
        if let Some((_, key, _)) = KEYED.iter().find(|(name, ..)| *name == item) {
            return Some(key);
        }
        match self.name {
            "conditions" if item.ends_with("Condition") => Some("type"),
            "imagePullSecrets" | "secrets" if matches!(item, "LocalObjectReference" | "ObjectReference") => {
                Some("name")
            }
            _ => None,
        }
    }

    /// Does a strategic merge add to this list of plain values, rather than replace it?
    pub(crate) fn merges_values(self) -> bool {
        self.name == "finalizers" && self.item().type_name().is_empty()
    }

    /// How an apply tells the items of this list apart.
    pub(crate) fn list(self) -> ListShape<'a> {
        let Some((schema, ix)) = self.place else { return ListShape::Atomic };
        match &schema.nodes[ix].list {
            ListType::Set => return ListShape::Set,
            ListType::Map(keys) => return ListShape::Map(keys.iter().map(String::as_str).collect()),
            ListType::Atomic if schema.custom => return ListShape::Atomic,
            ListType::Atomic => {}
        }
        let item = self.item().type_name();
        if let Some((_, _, keys)) = KEYED.iter().find(|(name, ..)| *name == item) {
            return ListShape::Map(keys.to_vec());
        }
        match self.merge_key() {
            Some(key) => ListShape::Map(vec![key]),
            None if self.merges_values() => ListShape::Set,
            None => ListShape::Atomic,
        }
    }

    /// Is this object one value to an apply?
    pub(crate) fn is_atomic_map(self) -> bool {
        let Some((schema, ix)) = self.place else { return false };
        let node = &schema.nodes[ix];
        node.atomic_map
            || (!schema.custom && (ATOMIC.contains(&node.name.as_str()) || self.name == "nodeSelector"))
    }

    /// The default of a key field of this list's items.
    pub(crate) fn key_default(self, key: &str) -> Option<serde_json::Value> {
        let (schema, ix) = self.item().place?;
        let field = schema.nodes[ix].properties.get(key)?;
        let default = schema.nodes[*field].default.clone();
        // The one default that is part of a key in built-in kinds.
        default.or_else(|| (!schema.custom && key == "protocol").then(|| "TCP".into()))
    }
}
