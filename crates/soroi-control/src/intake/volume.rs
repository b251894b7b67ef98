//! Where must a pod be for its volumes? Claims, volumes, and what the drivers of a node attach.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, PodSpec};
use k8s_openapi::api::storage::v1::CSINode;
use soroi_engine::event::{Attached, Claim, ClaimKey, ClaimState, Name, Unserved, Volume, ZONE_LABELS};

use super::{Invalid, selector};

/// Whoever binds a claim to its volume says with this that both sides know of it.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// Between the values of a zone label of a volume that is in several.
const ZONES_APART: &str = "__";

/// The claims that a pod names, each once; and what of its volumes nobody here can promise.
pub(super) fn claims(spec: &PodSpec, namespace: &Name) -> (Vec<ClaimKey>, Option<Unserved>) {
    let volumes = || spec.volumes.iter().flatten();
    let named = volumes().filter_map(|volume| volume.persistent_volume_claim.as_ref());
    let keys: BTreeSet<ClaimKey> = named
        .map(|claim| ClaimKey {
            namespace: Arc::clone(namespace),
            name: Arc::from(claim.claim_name.as_str()),
        })
        .collect();
    let own = volumes().any(|volume| volume.ephemeral.is_some());
    (keys.into_iter().collect(), own.then_some(Unserved::OwnVolumes))
}

/// A claim. It has its volume when both sides say so (kube-scheduler, `isPVCFullyBound`).
pub fn claim(claim: &PersistentVolumeClaim) -> Claim {
    let meta = &claim.metadata;
    let spec = claim.spec.as_ref();
    let volume = spec.and_then(|spec| spec.volume_name.as_deref()).filter(|name| !name.is_empty());
    let completed = meta.annotations.as_ref().is_some_and(|all| all.contains_key(BIND_COMPLETED));
    let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
    let state = match volume {
        _ if meta.deletion_timestamp.is_some() => ClaimState::Leaving,
        _ if phase == Some("Lost") => ClaimState::Lost,
        Some(_) if completed => ClaimState::Bound,
        _ => ClaimState::Unbound,
    };
    let modes = spec.and_then(|spec| spec.access_modes.as_ref()).into_iter().flatten();
    let text = |text: &Option<String>| Name::from(text.as_deref().unwrap_or_default());
    Claim {
        key: ClaimKey { namespace: text(&meta.namespace), name: text(&meta.name) },
        volume: volume.map(Arc::from),
        state,
        alone: modes.into_iter().any(|mode| mode == "ReadWriteOncePod"),
    }
}

/// A volume.
///
/// # Errors
/// [`Invalid`] on an expression of `spec.nodeAffinity`: then nobody knows which nodes reach it.
pub fn volume(volume: &PersistentVolume) -> Result<Volume, Invalid> {
    let spec = volume.spec.as_ref();
    let required = spec.and_then(|spec| spec.node_affinity.as_ref()?.required.as_ref());
    let field = "spec.nodeAffinity.required.nodeSelectorTerms";
    let terms = required.map(|required| selector::node_terms(&required.node_selector_terms, field));
    let labels = volume.metadata.labels.as_ref();
    let zones: BTreeMap<Name, BTreeSet<Name>> = ZONE_LABELS
        .iter()
        .filter_map(|(label, _)| {
            let values = labels?.get(*label)?.split(ZONES_APART).map(Arc::from).collect();
            Some((Arc::from(*label), values))
        })
        .collect();
    let csi = spec.and_then(|spec| spec.csi.as_ref());
    Ok(Volume {
        name: Arc::from(volume.metadata.name.as_deref().unwrap_or_default()),
        node_affinity: terms.transpose()?,
        zones,
        attached: csi.map(|csi| Attached {
            driver: Arc::from(csi.driver.as_str()),
            handle: Arc::from(csi.volume_handle.as_str()),
        }),
    })
}

/// How many volumes each driver of a node attaches, as far as it says so.
pub fn volume_limits(node: &CSINode) -> BTreeMap<Name, u32> {
    let limits = node.spec.drivers.iter().filter_map(|driver| {
        let count = driver.allocatable.as_ref()?.count?;
        Some((Arc::from(driver.name.as_str()), u32::try_from(count).unwrap_or(0)))
    });
    limits.collect()
}

#[cfg(test)]
mod tests;
