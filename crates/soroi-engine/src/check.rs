//! The invariants of ARCHITECTURE.md that the engine alone can see. For tests: it costs as much
//! as a restart.
//!
//! Everything that the engine keeps incrementally is made anew here, by other code where that is
//! possible, and compared. It changes nothing.

mod scratch;

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::Occupant;
use crate::decide::RUN;
use crate::decide::gang::{GangState, Held, Phase, Seat, SeatKind, SeatState};
use crate::decide::victims::pays;
use crate::decision::{Admission, Decision};
use crate::engine::Engine;
use crate::event::{GangId, Millis, Name, Policy, Readiness, TopologyWish};
use crate::quota::kueue::Usage;
use crate::quota::{FlavorResource, Sum};
use crate::reason::NotYet;

/// Verifies the state after a decision.
pub(crate) fn check(engine: &Engine, now: Millis) -> Result<(), Vec<String>> {
    let mut found = engine.cluster.discrepancies();
    charges(engine, &mut found);
    quotas(engine, &mut found);
    for (id, state) in &engine.gangs {
        if let Some(held) = &state.held {
            seats(id, held, &mut found);
            all_or_nothing(id, state, held, &mut found);
            quota_with_places(engine, id, state, held, &mut found);
        }
        told(engine, id, state, &mut found);
    }
    scratch::check(engine, now, &mut found);
    if found.is_empty() { Ok(()) } else { Err(found) }
}

/// Each pod charges the node that it is on, each seat that keeps a place charges its node, and
/// nobody else charges anything.
fn charges(engine: &Engine, found: &mut Vec<String>) {
    let mut expected: BTreeMap<Occupant, Name> = BTreeMap::new();
    for pod in engine.world.pods.values() {
        if let Some(node) = pod.occupies() {
            expected.insert(Occupant::Pod(pod.uid.clone()), node.clone());
        }
    }
    for (id, state) in &engine.gangs {
        let Some(held) = &state.held else { continue };
        for (at, seat) in held.seats() {
            let seen = |pod| engine.world.pods.get(pod).is_none_or(|pod| pod.node.is_some());
            let kept = match &seat.state {
                SeatState::Open | SeatState::Promised(_) | SeatState::Sent(_) => true,
                SeatState::Bound(pod) => !seen(pod),
                SeatState::Vacating(_) | SeatState::Done(_) => false,
            };
            let shaped = seat.shape.is_some() || state.expected(&held.sets[at.set].name).is_some();
            if let Some(node) = seat.node.as_ref().filter(|_| kept && shaped) {
                expected.insert(crate::decide::occupant(id, at), node.clone());
            }
        }
    }
    expected.extend(engine.kept_everywhere());
    for occupant in engine.cluster.occupants() {
        let (is, should) = (engine.cluster.node_of(occupant), expected.remove(occupant));
        if is != should.as_ref() {
            found.push(format!("{occupant:?} charges {is:?} instead of {should:?}"));
        }
    }
    found.extend(expected.into_iter().map(|(who, node)| format!("{who:?} does not charge {node}")));
}

/// What the trees say is used is what the gangs hold.
fn quotas(engine: &Engine, found: &mut Vec<String>) {
    let mut by_queue: BTreeMap<(&Name, &FlavorResource), Sum> = BTreeMap::new();
    let mut by_volcano: BTreeMap<(&Name, &Name), Sum> = BTreeMap::new();
    for charge in engine.gangs.values().flat_map(GangState::charges) {
        for (queue, usage) in charge.kueue.iter() {
            for (what, amount) in usage {
                *by_queue.entry((queue, what)).or_default() += Sum::from(*amount);
            }
        }
        for (queue, usage) in charge.volcano.iter() {
            for (resource, amount) in usage {
                *by_volcano.entry((queue, resource)).or_default() += Sum::from(*amount);
            }
        }
    }
    promises(engine, found);
    by_queue.retain(|_, sum| *sum != 0);
    by_volcano.retain(|_, sum| *sum != 0);
    let known: BTreeMap<_, _> = engine.quotas.kueue.all_used().collect();
    if known != by_queue {
        found.push(format!("usage of ClusterQueues is {known:?}, gangs hold {by_queue:?}"));
    }
    let known: BTreeMap<_, _> = engine.quotas.volcano.all_used().collect();
    if known != by_volcano {
        found.push(format!("usage of Volcano Queues is {known:?}, gangs hold {by_volcano:?}"));
    }
    let ready = engine.cluster.known_nodes().filter(|node| node.ready);
    let mut there: BTreeMap<&Name, Sum> = BTreeMap::new();
    for (resource, amount) in ready.flat_map(|node| &node.allocatable) {
        *there.entry(resource).or_default() += Sum::from(*amount);
    }
    there.retain(|_, sum| *sum != 0);
    let known: BTreeMap<_, _> = engine.quotas.volcano.totals().collect();
    if known != there {
        found.push(format!("Volcano Queues share {known:?}, ready nodes have {there:?}"));
    }
    let mut anew = engine.quotas.kueue.clone();
    anew.rebuild();
    if engine.quotas.kueue.is_fresh() && engine.quotas.kueue.sums() != anew.sums() {
        found.push(format!("quota sums are {:?}, anew {:?}", engine.quotas.kueue.sums(), anew.sums()));
    }
    let (known, all) = (engine.quotas.kueue.borrowers(), anew.borrowers());
    if engine.quotas.kueue.is_fresh() && known != all {
        found.push(format!("these are noted as borrowing: {known:?}, and these do: {all:?}"));
    }
}

/// What is promised beyond what is used is what holds keep, without what their victims hold; every hold
/// waits for somebody, and everybody who gave up what it holds is waited for.
fn promises(engine: &Engine, found: &mut Vec<String>) {
    let mut promised: BTreeMap<(&Name, &FlavorResource), Sum> = BTreeMap::new();
    for (id, state) in &engine.gangs {
        let kept = state.hold.iter().map(|hold| (&hold.charge, 1));
        let given = state.charges().filter(|_| state.given_up_to.is_some()).map(|charge| (charge, -1));
        for (charge, sign) in kept.chain(given) {
            for (queue, usage) in charge.kueue.iter() {
                for (what, amount) in usage {
                    *promised.entry((queue, what)).or_default() += sign * Sum::from(*amount);
                }
            }
        }
        if state.hold.is_some() != engine.holders.contains(id) {
            found.push(format!("{id}: holds, and is not noted, or the other way round"));
        }
        if let Some(to) = &state.given_up_to {
            let holder = engine.gangs.get(to).and_then(|state| state.hold.as_ref());
            if holder.is_none_or(|hold| !hold.victims.contains_key(id)) {
                found.push(format!("{id}: gave up what it holds to {to}, which does not hold it"));
            }
        }
        let waits =
            |victim: &GangId| engine.gangs.get(victim).is_some_and(|v| v.given_up_to.as_ref() == Some(id));
        // Where nobody starts while others get ready, it may wait for these instead.
        if state.hold.as_ref().is_some_and(|hold| !hold.victims.keys().any(waits))
            && !engine.is_one_getting_ready()
        {
            found.push(format!("{id}: holds for nobody who leaves"));
        }
        let pays = pays(state);
        if state.pays != pays {
            found.push(format!("{id}: pays in {pays:?}, and is noted in {:?}", state.pays));
        }
    }
    promised.retain(|_, sum| *sum != 0);
    let known: BTreeMap<_, _> = engine.quotas.kueue.all_promised().collect();
    if known != promised {
        found.push(format!("promised beyond usage is {known:?}, holds and victims say {promised:?}"));
    }
}

/// The lookups of an admission agree with its seats.
fn seats(id: &GangId, held: &Held, found: &mut Vec<String>) {
    for (at, seat) in held.seats() {
        if seat.state.pod().is_some_and(|pod| held.seat_of.get(pod) != Some(&at)) {
            found.push(format!("{id}: seat {at:?} and its pod disagree"));
        }
        if !held.of_kind(seat.state.kind()).any(|known| known == at) {
            found.push(format!("{id}: seat {at:?} is counted as another kind"));
        }
    }
    for set in &held.sets {
        let mut kinds = [0; 6];
        set.seats.iter().for_each(|seat| kinds[seat.state.kind() as usize] += 1);
        if kinds != set.kinds {
            found.push(format!("{id}: {:?} seats in {}, {:?} counted", kinds, set.name, set.kinds));
        }
    }
    let seats = held.seats().count();
    let counted: usize = held.by_kind.values().map(BTreeSet::len).sum();
    if seats != counted || held.seat_of.keys().any(|pod| held.unseated.contains(pod)) {
        found.push(format!("{id}: {seats} seats, {counted} counted"));
    }
}

/// Invariant 1: between nothing and the minimum, something is still under way.
fn all_or_nothing(id: &GangId, state: &GangState, held: &Held, found: &mut Vec<String>) {
    let lack = state.minimum().and_then(|need| need.lack(held.by_role(&RUN)));
    let under_way = match held.phase {
        Phase::Assumed | Phase::Replacing | Phase::Undoing(_) => true,
        Phase::Committed => state.due.is_some() || held.count(SeatKind::Sent) > 0,
    };
    let parked =
        state.fact.as_ref().is_none_or(|fact| fact.readiness == Readiness::NotYet(NotYet::ChecksPending));
    let Some(lack) = lack.filter(|_| held.running_or_done() > 0) else { return };
    if held.binds() && !under_way && !parked {
        found.push(format!("{id}: {lack} run, and nothing will change that"));
    }
}

/// Invariant 2: under Unified, whoever holds quota has places, or has asked for them, or is given
/// a limited time.
fn quota_with_places(engine: &Engine, id: &GangId, state: &GangState, held: &Held, found: &mut Vec<String>) {
    if held.admission.policy != Policy::Unified || held.phase != Phase::Committed || state.fact.is_none() {
        return;
    }
    let placed =
        held.seats().filter(|(_, seat)| seat.node.is_some() || matches!(seat.state, SeatState::Done(_)));
    let placed = placed.map(|(at, _)| (held.sets[at.set].role.as_ref(), 1));
    let lack = state.minimum().and_then(|need| need.lack(placed));
    let parked = state.fact.as_ref().is_some_and(|f| f.readiness == Readiness::NotYet(NotYet::ChecksPending));
    let waits = engine.waiting.stand(id).is_some() || state.due.is_some();
    if let Some(lack) = lack.filter(|_| !waits && !parked) {
        found.push(format!("{id}: holds quota with places for {lack}, and asks for no more"));
    }
}

/// Invariant 7: what a gang was told last is, but for numbers, why it waits now.
fn told(engine: &Engine, id: &GangId, state: &GangState, found: &mut Vec<String>) {
    let Some(now) = engine.reason_now(id) else { return };
    if !state.told.as_ref().is_some_and(|told| told.same_kind(&now)) {
        found.push(format!("{id}: was told {:?}, waits because {now:?}", state.told));
    }
}

/// Invariants 3, 4 and 9: what decisions reserved fits the nodes, the limits and the topology. What was too full
/// before may be so afterwards, but not fuller.
pub(crate) fn check_decisions(
    before: &Engine,
    decisions: &[Decision],
    after: &Engine,
    now: Millis,
) -> Result<(), Vec<String>> {
    // What is only accounted for when a decision is asked for is no decision.
    let mut before = before.clone();
    before.reconfigure();
    before.account_for_touched(now, &mut Vec::new());
    let mut found = Vec::new();
    for decision in decisions {
        let (places, queue) = match decision {
            Decision::Admit(admission) => (nodes_of(admission), admission.cluster_queue.as_ref()),
            Decision::Place(admission) => (nodes_of(admission), None),
            Decision::Bind { node, .. } => (BTreeSet::from([node]), None),
            Decision::Hold { admission, .. } => {
                found.extend(overpromised(&before, decision, admission, after));
                continue;
            }
            Decision::HoldEnded(_) => continue,
            Decision::Settled(_) | Decision::Undo { .. } | Decision::Pending { .. } => continue,
        };
        if let Decision::Admit(admission) | Decision::Place(admission) = decision {
            domains(&before, admission, after, &mut found);
        }
        for node in places {
            let was = before.cluster.free_on(node);
            for (resource, free) in after.cluster.free_on(node) {
                let free_before =
                    was.iter().find(|(known, _)| *known == resource).map_or(0, |(_, free)| *free);
                if free < 0 && free < free_before {
                    found.push(format!("{decision:?} overfills {node}: {free} {resource} left"));
                }
            }
        }
        let Some(queue) = queue else { continue };
        if after.settings.block_admission && after.getting_ready.len() > 1 {
            found.push(format!("{decision:?} did not wait for all of {:?} to be ready", after.getting_ready));
        }
        let tree = &after.quotas.kueue;
        for (what, left) in tree.headroom(queue, Usage::Now) {
            if left < 0 && tree.used(queue, &what) > before.quotas.kueue.used(queue, &what) {
                found.push(format!("{decision:?} overdraws {queue}: {left} of {what:?} left"));
            }
        }
    }
    if found.is_empty() { Ok(()) } else { Err(found) }
}

/// Invariant 10: what is promised is within the limits when the victims have left, or no further beyond them
/// than it was.
fn overpromised(before: &Engine, decision: &Decision, admission: &Admission, after: &Engine) -> Vec<String> {
    let Some(queue) = &admission.cluster_queue else { return Vec::new() };
    let was = before.quotas.kueue.headroom(queue, Usage::Promised);
    let asked: BTreeSet<&Name> = admission.pod_sets.iter().flat_map(|set| set.flavors.values()).collect();
    let now = after.quotas.kueue.headroom(queue, Usage::Promised).into_iter();
    let over = now.filter(|(what, left)| {
        let before = was.iter().find(|(known, _)| known == what).map_or(0, |(_, left)| *left);
        *left < 0 && *left < before && asked.contains(&what.flavor)
    });
    over.map(|(what, left)| format!("{decision:?} promises too much of {what:?}: {left} left")).collect()
}

/// Members of a pod set with a required level sit in one domain of it. Those that were found where
/// they are, or whose nodes were labelled otherwise since, may do so in several; whoever is placed
/// beside members in one domain is placed there.
fn domains(before: &Engine, admission: &Admission, after: &Engine, found: &mut Vec<String>) {
    let id = &admission.gang;
    let Some(GangState { fact: Some(fact), held: Some(held), .. }) = after.gangs.get(id) else { return };
    for (at, set) in held.sets.iter().enumerate() {
        let named = fact.pod_sets.iter().find(|named| named.name == set.name);
        let Some(TopologyWish::Required(level)) = named.map(|named| &named.topology.wish) else { continue };
        let levels = set.topology.as_ref().and_then(|name| after.world.topologies.get(name));
        let levels = levels.map_or(&[][..], |topology| &topology.levels);
        let Some(depth) = levels.iter().position(|label| label == level) else { continue };
        let domain = |node: &Name| -> Option<Vec<Name>> {
            let labels = &after.cluster.node(node)?.labels;
            levels[..=depth].iter().map(|label| labels.get(label).cloned()).collect()
        };
        let one = |held: &Held| {
            let seats = held.sets.get(at).into_iter().flat_map(|set| &set.seats).filter(|seat| is_kept(seat));
            let nodes = seats.filter_map(|seat| seat.node.as_ref());
            let domains: BTreeSet<_> = nodes.map(domain).collect();
            domains.len() <= 1 && !domains.contains(&None)
        };
        let earlier = before.gangs.get(id).and_then(|state| state.held.as_ref());
        let was_one = earlier.is_none_or(&one);
        let found_there = earlier.is_none() && held.started();
        if was_one && !found_there && !one(held) {
            found.push(format!("{id}: {} is required in one {level}, and is not: {admission:?}", set.name));
        }
    }
}

/// Somebody sits there, or will.
fn is_kept(seat: &Seat) -> bool {
    !matches!(seat.state, SeatState::Done(_) | SeatState::Vacating(_))
}

fn nodes_of(admission: &Admission) -> BTreeSet<&Name> {
    admission.pod_sets.iter().flat_map(|set| &set.nodes).map(|(node, _)| node).collect()
}
