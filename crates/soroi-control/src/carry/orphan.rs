//! Plans whose gang is gone: they stand until the last bound member has left.

use soroi_api::labels::soroi as keys;

use crate::call::Call;
use crate::intake::PlanFacts;
use crate::jobs::batch;
use crate::kind::{Kind, Target};
use crate::lanes::Write;
use crate::world::World;
use crate::world::store::Known;

/// What has to be written for a plan that belongs to no gang any more.
pub(crate) fn next(world: &World, plan: &Known<PlanFacts>) -> Vec<Write> {
    let members = world.owners_roll(&plan.facts.plan.owners, &[]);
    if members.any_there() { Vec::new() } else { remove(plan) }
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
