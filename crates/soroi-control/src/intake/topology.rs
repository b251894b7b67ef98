//! Where must the pods of a pod set be relative to each other? As annotations of a template say it,
//! and as a Workload does.
//!
//! The rules are those of Kueue 0.19 (`pkg/controller/jobframework/tas_validation.go`). What breaks
//! one is refused with the field's name: to ignore it would place the pods wrongly.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use soroi_api::kueue;
use soroi_api::labels::kueue as keys;
use soroi_engine::event::{Name, Slice, TopologyRequest, TopologyWish};

use super::{Invalid, some_name};

/// How a kind of object calls the parts of a request.
struct Fields {
    one_of: &'static str,
    slice_size: String,
    layers: String,
    group: String,
}

/// What was asked, before it is known to make sense.
struct Asked {
    wishes: [Option<TopologyWish>; 3],
    slice_level: Option<Name>,
    slice_size: Option<i64>,
    layers: Option<Vec<(Name, i64)>>,
    group: Option<Name>,
}

/// As in the annotation with the layers of slices.
#[derive(Deserialize)]
struct Layer {
    topology: String,
    size: i64,
}

/// The topology request that the annotations of a template make.
///
/// # Errors
/// [`Invalid`] on the annotation: several that exclude each other, or that lack what they need.
pub fn of_annotations(annotations: Option<&BTreeMap<String, String>>) -> Result<TopologyRequest, Invalid> {
    let get = |key: &str| some_name(annotations.and_then(|all| all.get(key)));
    let field = |key: &str| format!("annotations[{key}]");
    let fields = Fields {
        one_of: "annotations",
        slice_size: field(keys::PODSET_SLICE_SIZE),
        layers: field(keys::PODSET_SLICE_REQUIRED_TOPOLOGY_CONSTRAINTS),
        group: field(keys::PODSET_GROUP_NAME),
    };
    let unconstrained = get(keys::PODSET_UNCONSTRAINED_TOPOLOGY);
    let number = |text: Name| {
        text.parse().map_err(|_| Invalid::new(&*fields.slice_size, format!("\"{text}\" is no whole number")))
    };
    let layers = |text: Name| -> Result<Vec<(Name, i64)>, Invalid> {
        let wrong =
            |problem| Invalid::new(&*fields.layers, format!("must be a JSON array of layers: {problem}"));
        let layers: Vec<Layer> = serde_json::from_str(&text).map_err(wrong)?;
        Ok(layers.into_iter().map(|layer| (Arc::from(layer.topology), layer.size)).collect())
    };
    resolve(
        Asked {
            wishes: [
                get(keys::PODSET_REQUIRED_TOPOLOGY).map(TopologyWish::Required),
                get(keys::PODSET_PREFERRED_TOPOLOGY).map(TopologyWish::Preferred),
                unconstrained.filter(|value| &**value == "true").map(|_| TopologyWish::Unconstrained),
            ],
            slice_level: get(keys::PODSET_SLICE_REQUIRED_TOPOLOGY),
            slice_size: get(keys::PODSET_SLICE_SIZE).map(number).transpose()?,
            layers: get(keys::PODSET_SLICE_REQUIRED_TOPOLOGY_CONSTRAINTS).map(layers).transpose()?,
            group: get(keys::PODSET_GROUP_NAME),
        },
        &fields,
    )
}

/// The topology request of a Workload's pod set.
///
/// # Errors
/// [`Invalid`] within `topologyRequest`: requests that exclude each other, or that lack what they
/// need.
pub fn of_pod_set(request: Option<&kueue::PodSetTopologyRequest>) -> Result<TopologyRequest, Invalid> {
    let Some(request) = request else { return Ok(TopologyRequest::NONE) };
    let field = |name: &str| format!("topologyRequest.{name}");
    let fields = Fields {
        one_of: "topologyRequest",
        slice_size: field("podSetSliceSize"),
        layers: field("podsetSliceRequiredTopologyConstraints"),
        group: field("podSetGroupName"),
    };
    let layers = &request.slice_required_topology_constraints;
    let layer = |layer: &kueue::SliceTopologyConstraint| (layer.topology.as_str().into(), layer.size.into());
    resolve(
        Asked {
            wishes: [
                some_name(request.required.as_ref()).map(TopologyWish::Required),
                some_name(request.preferred.as_ref()).map(TopologyWish::Preferred),
                (request.unconstrained == Some(true)).then_some(TopologyWish::Unconstrained),
            ],
            slice_level: some_name(request.pod_set_slice_required_topology.as_ref()),
            slice_size: request.pod_set_slice_size.map(i64::from),
            layers: (!layers.is_empty()).then(|| layers.iter().map(layer).collect()),
            group: some_name(request.pod_set_group_name.as_ref()),
        },
        &fields,
    )
}

fn resolve(asked: Asked, fields: &Fields) -> Result<TopologyRequest, Invalid> {
    let mut wishes = asked.wishes.into_iter().flatten();
    let wish = match (wishes.next(), wishes.next()) {
        (one, None) => one.unwrap_or_default(),
        (_, Some(_)) => {
            return Err(Invalid::new(fields.one_of, "must not contain more than one topology request"));
        }
    };
    let (size_field, layers_field) = (&*fields.slice_size, &*fields.layers);
    let slices = match (asked.slice_level, asked.slice_size, asked.layers) {
        (None, None, None) => Vec::new(),
        (Some(level), Some(size), None) => vec![slice(level, size, size_field)?],
        (None, None, Some(layers)) => nested(layers, layers_field)?,
        (Some(_), None, None) => {
            return Err(Invalid::new(size_field, "must be given with the slices' level"));
        }
        (None, Some(_), None) => {
            return Err(Invalid::new(size_field, "must not be given without the slices' level"));
        }
        (_, _, Some(_)) => {
            return Err(Invalid::new(layers_field, "must be the only thing said about slices"));
        }
    };
    if let Some(group) = &asked.group {
        let problem = if !slices.is_empty() {
            Some("must not be given together with slices")
        } else if matches!(wish, TopologyWish::None | TopologyWish::Unconstrained) {
            Some("needs a required or a preferred level")
        } else if group.parse::<u64>().is_ok() {
            Some("must not be a number")
        } else {
            None
        };
        if let Some(problem) = problem {
            return Err(Invalid::new(&*fields.group, problem));
        }
    }
    Ok(TopologyRequest { wish, slices, group: asked.group })
}

/// Layers from coarse to fine. That their levels are ordered so only a Topology can tell.
fn nested(layers: Vec<(Name, i64)>, field: &str) -> Result<Vec<Slice>, Invalid> {
    if layers.is_empty() || layers.len() > keys::SLICE_LAYERS_MAX {
        return Err(Invalid::new(field, format!("must have 1 to {} layers", keys::SLICE_LAYERS_MAX)));
    }
    let mut slices: Vec<Slice> = Vec::new();
    for (at, (level, size)) in layers.into_iter().enumerate() {
        let within = |name: &str| format!("{field}[{at}].{name}");
        if slices.iter().any(|other| other.level == level) {
            return Err(Invalid::new(within("topology"), "is named twice"));
        }
        let slice = slice(level, size, &within("size"))?;
        if let Some(outer) = slices.last().filter(|outer| !outer.size.is_multiple_of(slice.size)) {
            let problem = format!("must evenly divide the parent layer size {}", outer.size);
            return Err(Invalid::new(within("size"), problem));
        }
        slices.push(slice);
    }
    Ok(slices)
}

fn slice(level: Name, size: i64, field: &str) -> Result<Slice, Invalid> {
    match i32::try_from(size).ok().and_then(|size| u32::try_from(size).ok()) {
        Some(size) if size > 0 => Ok(Slice { level, size }),
        _ => Err(Invalid::new(field, format!("{size} must be a number of pods of at least 1"))),
    }
}

#[cfg(test)]
mod tests;
