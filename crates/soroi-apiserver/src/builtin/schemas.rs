//! The schemas of built-in kinds, from the types of k8s-openapi.

use std::sync::{Arc, OnceLock};

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    ConfigMap, Event, LimitRange, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodTemplate,
    ResourceQuota, Secret, Service, ServiceAccount,
};
use k8s_openapi::api::events::v1::Event as NewEvent;
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode, StorageClass};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::schema::{Schema, compile_builtin};

/// One kind's schema, made when it is first asked for: a test that stores three kinds does not
/// wait for thirty.
macro_rules! table {
    ($(($group:literal, $kind:literal) => $type:ty,)*) => {
        /// The schema of a built-in kind, as the types say it.
        pub(super) fn source(group: &str, kind: &str) -> Option<serde_json::Value> {
            match (group, kind) {
                $(($group, $kind) => Some(schemars::schema_for!($type).to_value()),)*
                _ => None,
            }
        }

        /// The schema of a built-in kind.
        pub(super) fn of(group: &str, kind: &str) -> Option<Arc<Schema>> {
            match (group, kind) {
                $(($group, $kind) => {
                    static SCHEMA: OnceLock<Arc<Schema>> = OnceLock::new();
                    Some(SCHEMA.get_or_init(|| {
                        Arc::new(compile_builtin(schemars::schema_for!($type).as_value()))
                    }).clone())
                })*
                _ => None,
            }
        }
    };
}

table! {
    ("", "ConfigMap") => ConfigMap,
    ("", "Event") => Event,
    ("", "LimitRange") => LimitRange,
    ("", "Namespace") => Namespace,
    ("", "Node") => Node,
    ("", "PersistentVolume") => PersistentVolume,
    ("", "PersistentVolumeClaim") => PersistentVolumeClaim,
    ("", "Pod") => Pod,
    ("", "PodTemplate") => PodTemplate,
    ("", "ResourceQuota") => ResourceQuota,
    ("", "Secret") => Secret,
    ("", "Service") => Service,
    ("", "ServiceAccount") => ServiceAccount,
    ("apiextensions.k8s.io", "CustomResourceDefinition") => CustomResourceDefinition,
    ("apps", "DaemonSet") => DaemonSet,
    ("apps", "Deployment") => Deployment,
    ("apps", "ReplicaSet") => ReplicaSet,
    ("apps", "StatefulSet") => StatefulSet,
    ("batch", "Job") => Job,
    ("coordination.k8s.io", "Lease") => Lease,
    ("events.k8s.io", "Event") => NewEvent,
    ("node.k8s.io", "RuntimeClass") => RuntimeClass,
    ("policy", "PodDisruptionBudget") => PodDisruptionBudget,
    ("rbac.authorization.k8s.io", "ClusterRole") => ClusterRole,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding") => ClusterRoleBinding,
    ("rbac.authorization.k8s.io", "Role") => Role,
    ("rbac.authorization.k8s.io", "RoleBinding") => RoleBinding,
    ("scheduling.k8s.io", "PriorityClass") => PriorityClass,
    ("storage.k8s.io", "CSIDriver") => CSIDriver,
    ("storage.k8s.io", "CSINode") => CSINode,
    ("storage.k8s.io", "StorageClass") => StorageClass,
}
