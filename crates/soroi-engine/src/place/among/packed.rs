//! How the pods of a gang are packed where they like all nodes equally well: what `packing` knows of one node,
//! for the nodes and the mix of pods of this cluster.
//!
//! Devices are counted whole here, as nodes do: pieces of the extended resource that the pods ask for, or, where it
//! is asked what others can still use, of the one of which most is asked for in the cluster.

use std::collections::BTreeMap;

use super::super::part::Part;
use super::rules::Rules;
use crate::cluster::{Cluster, Need, NodeIx};
use crate::event::{Amount, Name};
use crate::packing::{DEVICE, Mix, Needs, Packing, Room, Score, judge};
use crate::resources::ResourceIx;

/// More devices on one node count as so many.
const DEVICES_MAX: Amount = 256;

/// See the module.
pub(super) struct Packed {
    packing: Packing,
    /// Amounts that are no devices: processors and memory, as far as anybody has named them.
    plain: Vec<ResourceIx>,
    parts: Vec<OfPart>,
    mixes: BTreeMap<Option<ResourceIx>, Mix>,
}

struct OfPart {
    device: Option<ResourceIx>,
    needs: Needs,
}

impl Packed {
    pub(super) fn new(packing: Packing, cluster: &Cluster, parts: &[Part]) -> Self {
        // What comes is like what is there, and like the gang itself.
        let there = cluster.mix().into_iter().map(|(need, count)| (need.as_ref(), u64::from(count)));
        let own = parts.iter().map(|part| (part.need.as_ref(), u64::from(part.count)));
        let kinds: Vec<(&Need, u64)> = there.chain(own).collect();
        let is_device = |resource: ResourceIx| is_extended(cluster.resource_names().name(resource));
        let mut asked: BTreeMap<ResourceIx, i128> = BTreeMap::new();
        for (need, count) in &kinds {
            for (resource, amount) in need.requests.iter().filter(|(resource, _)| is_device(*resource)) {
                *asked.entry(resource).or_default() += i128::from(amount) * i128::from(*count);
            }
        }
        // Ties end with names: numbers follow the order in which names were heard of.
        let name = |resource: ResourceIx| cluster.resource_names().name(resource).clone();
        let most =
            asked.iter().max_by_key(|(resource, amount)| (**amount, std::cmp::Reverse(name(**resource))));
        let most = most.map(|(resource, _)| *resource);
        let plain: Vec<ResourceIx> =
            ["cpu", "memory"].iter().filter_map(|name| cluster.resource_names().known(name)).collect();
        let of_part = |part: &Part| {
            let own = part.need.requests.iter().filter(|(resource, _)| is_device(*resource));
            let own = own.max_by_key(|(resource, amount)| (*amount, std::cmp::Reverse(name(*resource))));
            let device =
                own.map(|(resource, _)| resource).or(most.filter(|_| packing == Packing::Fragmentation));
            OfPart { device, needs: needs(&part.need, &plain, device) }
        };
        let parts: Vec<OfPart> = parts.iter().map(of_part).collect();
        let mut mixes = BTreeMap::new();
        for part in &parts {
            let mix =
                || Mix::new(kinds.iter().map(|(need, count)| (needs(need, &plain, part.device), *count)));
            mixes.entry(part.device).or_insert_with(mix);
        }
        Self { packing, plain, parts, mixes }
    }

    /// How good a place for one more pod of the part the node is now; smaller is better.
    pub(super) fn score(&self, rules: &Rules, part: usize, node: NodeIx) -> Option<Score> {
        let of_part = &self.parts[part];
        let space = rules.space_of(node);
        let free = |resource: &ResourceIx| space.free(*resource);
        let devices = of_part.device.as_ref().map_or(0, free).clamp(0, DEVICES_MAX);
        let room = Room {
            plain: self.plain.iter().map(free).collect(),
            devices: (0..devices).map(|_| DEVICE).collect(),
            kind: 0,
        };
        judge(self.packing, &room, &of_part.needs, &self.mixes[&of_part.device]).map(|(score, _)| score)
    }
}

fn needs(need: &Need, plain: &[ResourceIx], device: Option<ResourceIx>) -> Needs {
    let amount = |wanted: ResourceIx| {
        need.requests.iter().find(|(resource, _)| *resource == wanted).map_or(0, |(_, amount)| amount)
    };
    let devices = device.map_or(0, amount).clamp(0, DEVICES_MAX);
    Needs {
        plain: plain.iter().map(|resource| amount(*resource)).collect(),
        devices: u32::try_from(devices).unwrap_or(0),
        milli: if devices > 0 { DEVICE } else { 0 },
        kinds: 0,
    }
}

/// Whether Kubernetes does not know the resource by itself (`IsExtendedResourceName`). (Tests call devices `gpu`.)
fn is_extended(name: &Name) -> bool {
    let own = ["cpu", "memory", "ephemeral-storage", "pods", "mem"];
    !own.contains(&&**name) && !name.starts_with("hugepages-") && !name.starts_with("attachable-volumes-")
}
