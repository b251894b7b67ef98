//! Plans whose gang is gone: they stand until the last bound member has left.

use soroi_api::labels::soroi as keys;
use soroi_engine::event::Name;

use crate::call::Call;
use crate::intake::PlanFacts;
use crate::jobs::batch;
use crate::kind::{Kind, Target};
use crate::lanes::Write;
use crate::world::World;
use crate::world::store::Known;

/// What has to be written for a plan that belongs to no gang any more.
pub(crate) fn next(world: &World, plan: &Known<PlanFacts>) -> Vec<Write> {
    let owners = &plan.facts.plan.owners;
    let ours: Vec<Name> = owners.iter().filter(|owner| !is_of_another(world, owner, plan)).cloned().collect();
    if world.owners_roll(&ours, &[]).any_there() { Vec::new() } else { remove(plan) }
}

/// Whether this owner of the plan's pods is a PodGroup that was made again under the same name: they
/// are its members now, and it pays for them.
fn is_of_another(world: &World, owner: &Name, plan: &Known<PlanFacts>) -> bool {
    let Some(group) = &plan.facts.group else { return false };
    let again = world.groups.get(&(plan.meta.namespace.clone(), group.clone()));
    again.is_some_and(|again| again.facts.facts.key == *owner && again.meta.uid != plan.facts.plan.gang)
}

/// Removes a plan: first the wish, then the finalizer that kept others from doing so.
pub(super) fn remove(plan: &Known<PlanFacts>) -> Vec<Write> {
    let meta = &plan.meta;
    if meta.terminating {
        return batch::let_go(meta, Kind::GangPlan, keys::PLAN_FINALIZER).into_iter().collect();
    }
    let target = Target::new(Kind::GangPlan, &meta.namespace, &meta.name);
    vec![Write { target, call: Call::delete(&meta.uid) }]
}
