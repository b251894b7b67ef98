//! Several pod sets that compete for the same nodes.

use super::Taken;
use super::part::Part;
use super::problem::explain;
use crate::cluster::Cluster;
use crate::reason::PlaceProblem;

/// Places all parts, or says which found no room and why.
pub(super) fn place(
    cluster: &mut Cluster,
    parts: &[Part],
    min_members: Option<u32>,
) -> Result<Vec<Taken>, Vec<(usize, PlaceProblem)>> {
    let mut all = Vec::new();
    let mut problems = Vec::new();
    let mut placed = 0u64;
    for (at, part) in parts.iter().enumerate() {
        let Some(view) = part.view(cluster) else {
            problems.push((at, explain(cluster, part, false)));
            all.push(Taken::new());
            continue;
        };
        let count = u32::try_from(part.fitting(&view)).unwrap_or(u32::MAX).min(part.count);
        let taken = part.region(&view, count).map(|region| part.take(&view, &region, count)).unwrap_or_default();
        if count < part.count {
            problems.push((at, explain(cluster, part, parts.len() > 1)));
        }
        for (node, count) in &taken {
            cluster.take(*node, &part.need, *count);
        }
        placed += u64::from(count);
        all.push(taken);
    }
    let enough = match min_members {
        Some(min) => placed >= u64::from(min),
        None => problems.is_empty(),
    };
    if enough { Ok(all) } else { Err(problems) }
}
