//! Invariant 5, progress: an engine that is told the objects anew, holds what is held, and decides
//! everybody without certificates comes to the same answers.

use crate::decide::wanted::Wanted;
use crate::decision::Decision;
use crate::engine::Engine;
use crate::event::{Event, GangId, Millis, Name};
use crate::reason::{FlavorProblem, Reason};

pub(super) fn check(engine: &Engine, now: Millis, found: &mut Vec<String>) {
    let (mut fresh, mut decisions) = (from_objects(engine), Vec::new());
    let waiting = engine
        .gangs
        .keys()
        .filter(|id| engine.waiting.stand(id).is_some() || fresh.gangs[*id].held.is_none())
        .filter(|id| fresh.gangs[*id].hold.is_none());
    for id in waiting.cloned().collect::<Vec<_>>() {
        match engine.waiting.stand(&id).map(|(_, want)| engine.waiting.ask(want)) {
            Some(Wanted::Places(_)) => fresh.want_places(&id),
            Some(Wanted::More(_)) => fresh.want_growth(&id),
            Some(Wanted::Start(_)) | None => _ = fresh.stand(&id, now),
        }
    }
    fresh.place_admitted(now, &mut decisions);
    fresh.start_waiting(now, &mut decisions);
    for decision in decisions.iter().filter(|decision| !matches!(decision, Decision::Pending { .. })) {
        found.push(format!("from scratch it decides {decision:?}"));
    }
    // Who stands aside for a moment gets its reason after it; who sleeps keeps its own meanwhile.
    let aside = |id: &GangId| engine.arriving.has_aside(id) || fresh.arriving.has_aside(id);
    for id in engine.gangs.keys().filter(|id| !aside(id)) {
        if fresh.blocked.contains(id) && engine.waiting.stand(id).is_some() {
            // It sleeps, and while others' pods are waited for nobody is decided.
            continue;
        }
        if let Some((_, want)) = engine.waiting.stand(id)
            && engine.waiting.certificate(want).is_some()
            && fresh.reason_now(id).is_some_and(|now| matches!(*now, Reason::BehindPreemptor { .. }))
        {
            // It sleeps as well, and behind a gang that waits for its victims nobody is decided.
            continue;
        }
        let (one, other) = (engine.reason_now(id), fresh.reason_now(id));
        let mixed = engine.gangs[id].fact.as_ref().is_some_and(|fact| fact.pod_sets.len() > 1);
        let same = match (&one, &other) {
            (Some(one), Some(other)) => one.same_kind(other) || (mixed && have_in_common(one, other)),
            (one, other) => one.is_none() && other.is_none(),
        };
        if !same {
            found.push(format!("{id}: waits because {one:?}, from scratch because {other:?}"));
        }
    }
}

/// An engine that was told everything anew. What the objects do not show (decisions that are not
/// written yet, pauses, learnt shapes) is taken over.
fn from_objects(engine: &Engine) -> Engine {
    let mut fresh = Engine::new(engine.settings.clone());
    for event in objects(engine) {
        fresh.take_in(event, 0);
    }
    fresh.reconfigured = false;
    fresh.quotas.kueue.refresh();
    fresh.inactive = fresh.inactive_cluster_queues();
    for (id, state) in &engine.gangs {
        fresh.world.set_owners(id, &[], &state.owners);
        if state.gone {
            fresh.world.step_back(id, &state.owners);
        }
        fresh.gangs.insert(id.clone(), state.clone());
        for charge in state.charges() {
            fresh.quotas.charge(charge);
        }
        fresh.charge_seats(id);
        fresh.note_getting_ready(id);
        if state.given_up_to.is_some() {
            state.charges().for_each(|charge| fresh.quotas.give_up(charge, true));
        }
        if let Some(hold) = &state.hold {
            fresh.quotas.promise(&hold.charge, true);
            fresh.holders.insert(id.clone());
        }
    }
    fresh.payers = engine.payers.clone();
    fresh.arriving = engine.arriving.clone();
    for holder in &engine.holders {
        fresh.keep_room(holder);
    }
    fresh
}

fn objects(engine: &Engine) -> impl Iterator<Item = Event> {
    let world = &engine.world;
    let nodes = engine.cluster.known_nodes().cloned().map(Event::Node);
    let pods = world.pods.values().cloned().map(Event::Pod);
    let namespaces = world.namespaces.iter();
    let namespaces =
        namespaces.map(|(name, labels)| Event::Namespace { name: name.clone(), labels: labels.clone() });
    let flavors = world.flavors.values().cloned().map(Event::Flavor);
    let topologies = world.topologies.values().cloned().map(Event::Topology);
    let doors = world.local_queues.values().cloned().map(Event::LocalQueue);
    let cohorts = engine.quotas.kueue.cohorts().cloned().map(Event::Cohort);
    let queues = engine.quotas.kueue.queues().cloned().map(Event::ClusterQueue);
    let volcano = engine.quotas.volcano.queues().cloned().map(Event::VolcanoQueue);
    // Not the order in which they came, on purpose.
    pods.chain(engine.cluster.volume_facts())
        .chain(doors)
        .chain(queues)
        .chain(cohorts)
        .chain(volcano)
        .chain(flavors)
        .chain(topologies)
        .chain(namespaces)
        .chain(nodes)
}

/// Of several pod sets that could be named, the reason names those that the search met, with the flavors
/// that it tried for them. Which these are may change without a change of the answer, and room that is lost
/// wakes nobody: both must be true then, and are compared by what they have in common, a pod set or that
/// places are missing.
fn have_in_common(one: &Reason, other: &Reason) -> bool {
    match (one, other) {
        (Reason::NoFlavor(_), Reason::NoFlavor(_)) | (Reason::NoPlace(_), Reason::NoPlace(_)) => {
            let (these, those) = (names(one), names(other));
            let others = these.len().max(those.len()) > 1 || these != those;
            (others && these.iter().any(|name| those.contains(name)))
                || (lacks_places(one) && lacks_places(other))
        }
        _ => false,
    }
}

/// The pod sets that a reason names.
fn names(reason: &Reason) -> Vec<&Name> {
    match reason {
        Reason::NoFlavor(sets) => sets.iter().map(|(name, _)| name).collect(),
        Reason::NoPlace(sets) => sets.iter().map(|(name, _)| name).collect(),
        _ => Vec::new(),
    }
}

fn lacks_places(reason: &Reason) -> bool {
    match reason {
        Reason::NoFlavor(sets) => {
            let mut problems = sets.iter().flat_map(|(_, problems)| problems);
            problems.any(|problem| matches!(problem, FlavorProblem::NoPlace { .. }))
        }
        Reason::NoPlace(_) => true,
        _ => false,
    }
}
