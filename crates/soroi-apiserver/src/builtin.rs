//! Which kinds are always there, and what is special about each?
//!
//! One table of kinds and one module per kind that has rules of its own. The rules are those of
//! Kubernetes 1.36's API server (`pkg/apis`, `pkg/registry` and its built-in admission).

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use crate::Shared;
use crate::meta::NameRule;
use crate::resource::{Resource, Scale, View};
use crate::schema::Schema;
use crate::status::{ApiError, FieldError};
use crate::store::State;

pub(crate) mod crd;
pub(crate) mod event;
mod job;
pub(crate) mod namespace;
mod node;
pub(crate) mod pod;
mod schemas;
mod small;

/// What Kubernetes does for one kind alone. Every function is pure; those that look at other
/// objects are given the state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Form of the names.
    pub(crate) name: NameRule,
    /// Does `metadata.generation` count the changes of the spec?
    pub(crate) generation: bool,
    /// Must an update name the revision that it changes? (CRDs always must.)
    pub(crate) needs_revision: bool,
    /// May a new object bring its status?
    pub(crate) created_with_status: bool,
    /// Fills in what a client may leave out; runs on every write.
    pub(crate) defaults: fn(&mut Value),
    /// Built-in admission of new objects, which may fill in what depends on other objects.
    pub(crate) admit: fn(&State, &mut Value) -> Result<(), ApiError>,
    /// Built-in admission in the moment of storing a new object: quota.
    pub(crate) admit_stored: fn(&State, &Value) -> Result<(), ApiError>,
    /// Prepares a new object, after its uid and name are known.
    pub(crate) create: fn(&mut Value),
    /// Prepares a changed object, given the old.
    pub(crate) update: fn(&mut Value, &Value),
    /// What is wrong with an object.
    pub(crate) check: fn(&Value) -> Vec<FieldError>,
    /// What is wrong with a change, from the second to the first.
    pub(crate) check_update: fn(&Value, &Value) -> Vec<FieldError>,
    /// What is wrong with a change of the status.
    pub(crate) check_status: fn(&Value, &Value) -> Vec<FieldError>,
}

/// Nothing special.
pub(crate) const PLAIN: Rules = Rules {
    name: NameRule::Subdomain,
    generation: false,
    needs_revision: false,
    created_with_status: false,
    defaults: |_| {},
    admit: |_, _| Ok(()),
    admit_stored: |_, _| Ok(()),
    create: |_| {},
    update: |_, _| {},
    check: |_| Vec::new(),
    check_update: |_, _| Vec::new(),
    check_status: |_, _| Vec::new(),
};

/// Roles and their bindings are kept, and nobody is held to them.
const ROLE: Rules = Rules { name: NameRule::PathSegment, ..PLAIN };

/// A row of the table below.
struct Row {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    short: &'static [&'static str],
    categories: &'static [&'static str],
    namespaced: bool,
    status: bool,
    selectable: &'static [&'static str],
    /// Is there a scale subresource?
    scale: bool,
    rules: Rules,
}

const fn row(group: &'static str, kind: &'static str, plural: &'static str, rules: Rules) -> Row {
    Row {
        group,
        kind,
        plural,
        short: &[],
        categories: &[],
        namespaced: true,
        status: false,
        selectable: &[],
        scale: false,
        rules,
    }
}

impl Row {
    const fn short(self, short: &'static [&'static str]) -> Self {
        Self { short, ..self }
    }

    /// Shown by `kubectl get all`.
    const fn all(self) -> Self {
        Self { categories: &["all"], ..self }
    }

    const fn cluster(self) -> Self {
        Self { namespaced: false, ..self }
    }

    const fn status(self) -> Self {
        Self { status: true, ..self }
    }

    const fn scale(self) -> Self {
        Self { scale: true, ..self }
    }

    const fn selectable(self, selectable: &'static [&'static str]) -> Self {
        Self { selectable, ..self }
    }

    fn resource(&self) -> Resource {
        let slot = if self.group.is_empty() || self.kind == "Event" {
            self.plural.to_owned()
        } else {
            format!("{}.{}", self.plural, self.group)
        };
        Resource {
            group: self.group.to_owned(),
            version: "v1".to_owned(),
            kind: self.kind.to_owned(),
            list_kind: format!("{}List", self.kind),
            plural: self.plural.to_owned(),
            singular: self.kind.to_lowercase(),
            short_names: self.short.iter().map(|s| (*s).to_owned()).collect(),
            categories: self.categories.iter().map(|c| (*c).to_owned()).collect(),
            namespaced: self.namespaced,
            status: self.status,
            scale: self.scale.then(|| {
                let path = |a: &str, b: &str| vec![a.to_owned(), b.to_owned()];
                Scale {
                    spec_replicas: path("spec", "replicas"),
                    status_replicas: path("status", "replicas"),
                    selector: Some(path("spec", "selector")),
                }
            }),
            custom: false,
            rules: self.rules,
            selectable: self.selectable.iter().map(|s| (*s).to_owned()).collect(),
            slot: Arc::from(slot.as_str()),
            view: if self.group == "events.k8s.io" { View::NewEvent } else { View::Plain },
            columns: crate::table::of_builtin(self.group, self.kind).into(),
            schema: OnceLock::new(),
        }
    }
}

fn table() -> Vec<Row> {
    let mut rows = core();
    rows.extend(groups());
    rows
}

fn core() -> Vec<Row> {
    vec![
        row("", "Pod", "pods", pod::RULES).short(&["po"]).all().status().selectable(&[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ]),
        row("", "Node", "nodes", node::RULES)
            .short(&["no"])
            .cluster()
            .status()
            .selectable(&["spec.unschedulable"]),
        row("", "Namespace", "namespaces", namespace::RULES)
            .short(&["ns"])
            .cluster()
            .status()
            .selectable(&["status.phase"]),
        row("", "Event", "events", PLAIN).short(&["ev"]).selectable(event::SELECTABLE),
        row("", "ConfigMap", "configmaps", PLAIN).short(&["cm"]),
        row("", "Secret", "secrets", small::SECRET).selectable(&["type"]),
        row("", "Service", "services", small::SERVICE)
            .short(&["svc"])
            .all()
            .status()
            .selectable(&["spec.clusterIP", "spec.type"]),
        row("", "ServiceAccount", "serviceaccounts", PLAIN).short(&["sa"]),
        row("", "PersistentVolume", "persistentvolumes", small::VOLUME).short(&["pv"]).cluster().status(),
        row("", "PersistentVolumeClaim", "persistentvolumeclaims", small::CLAIM).short(&["pvc"]).status(),
        row("", "LimitRange", "limitranges", small::LIMIT_RANGE).short(&["limits"]),
        row("", "ResourceQuota", "resourcequotas", PLAIN).short(&["quota"]).status(),
        row("", "PodTemplate", "podtemplates", small::POD_TEMPLATE),
    ]
}

fn groups() -> Vec<Row> {
    vec![
        row("events.k8s.io", "Event", "events", PLAIN).short(&["ev"]).selectable(event::SELECTABLE),
        row("batch", "Job", "jobs", job::RULES).all().status().selectable(&["status.successful"]),
        row("apps", "Deployment", "deployments", small::REPLICATED).short(&["deploy"]).all().status().scale(),
        row("apps", "ReplicaSet", "replicasets", small::REPLICATED).short(&["rs"]).all().status().scale(),
        row("apps", "StatefulSet", "statefulsets", small::REPLICATED).short(&["sts"]).all().status().scale(),
        row("apps", "DaemonSet", "daemonsets", small::TEMPLATED).short(&["ds"]).all().status(),
        row("scheduling.k8s.io", "PriorityClass", "priorityclasses", small::PRIORITY_CLASS)
            .short(&["pc"])
            .cluster(),
        row("coordination.k8s.io", "Lease", "leases", PLAIN),
        row("node.k8s.io", "RuntimeClass", "runtimeclasses", small::RUNTIME_CLASS).cluster(),
        row("policy", "PodDisruptionBudget", "poddisruptionbudgets", Rules { generation: true, ..PLAIN })
            .short(&["pdb"])
            .status(),
        row("rbac.authorization.k8s.io", "Role", "roles", ROLE),
        row("rbac.authorization.k8s.io", "RoleBinding", "rolebindings", ROLE),
        row("rbac.authorization.k8s.io", "ClusterRole", "clusterroles", ROLE).cluster(),
        row("rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings", ROLE).cluster(),
        row("storage.k8s.io", "StorageClass", "storageclasses", small::STORAGE_CLASS)
            .short(&["sc"])
            .cluster(),
        row("storage.k8s.io", "CSINode", "csinodes", PLAIN).cluster(),
        row("storage.k8s.io", "CSIDriver", "csidrivers", PLAIN).cluster(),
        row("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", crd::RULES)
            .short(&["crd", "crds"])
            .cluster()
            .status(),
    ]
}

/// The kinds that are always served.
pub(crate) fn resources() -> Vec<Resource> {
    table().iter().map(Row::resource).collect()
}

/// The schema of a built-in kind, compiled at its first use in the process.
pub(crate) fn schema(group: &str, kind: &str) -> Option<Arc<Schema>> {
    schemas::of(group, kind)
}

/// The JSON schema of a built-in kind, with all that it refers to.
pub(crate) fn schema_source(group: &str, kind: &str) -> Option<Value> {
    schemas::source(group, kind)
}

/// Creates what a new cluster has: its namespaces, and the CRDs that were asked for.
pub(crate) fn bootstrap(shared: &Arc<Shared>, crds: Vec<Value>) {
    for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        create(shared, "", "namespaces", object);
    }
    for (name, value) in small::SYSTEM_CLASSES {
        let object = json!({
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": { "name": name },
            "value": value,
        });
        create(shared, "scheduling.k8s.io", "priorityclasses", object);
    }
    for crd in crds {
        create(shared, "apiextensions.k8s.io", "customresourcedefinitions", crd);
    }
}

fn create(shared: &Arc<Shared>, group: &str, plural: &str, object: Value) {
    let Some(resource) = shared.registry().find(group, "v1", plural).cloned() else {
        return;
    };
    let mut call = crate::write::Call::internal(shared, resource);
    let name = crate::object::meta(&object, "name").to_owned();
    if let Err(error) = crate::write::create_object(&mut call, object) {
        tracing::error!(%error, name, "an object that the cluster should start with is refused");
    }
}
