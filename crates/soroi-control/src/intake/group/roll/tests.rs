//! A roll says what counting all members anew says, whatever came and went before.

use proptest::prelude::*;
use soroi_engine::event::Shape;

use super::*;
use crate::intake::pod::ScheduledCondition;
use crate::intake::tests::yaml;
use crate::intake::{Schedulers, pod};

/// A pod in one of many states.
fn any_pod() -> impl Strategy<Value = PodFacts> {
    let life = (0..4_usize, any::<bool>(), any::<bool>(), any::<bool>());
    let wish = (0..3_u32, 0..2_usize, 0..2_usize, any::<bool>(), 0..2_i32, 0..3_usize);
    (0..6_u32, life, wish).prop_map(|(number, (phase, terminating, node, ready), wish)| {
        let (gpus, role, topology, invalid, priority, shown) = wish;
        let object = yaml(&format!(
            "
            metadata: {{name: p{number}, namespace: team, uid: uid-{}}}
            spec: {{schedulerName: soroi, containers: [{{name: c, image: i}}]}}
            ",
            9 - number
        ));
        let mut facts = pod(&object, &Schedulers::default()).unwrap();
        let phases = [PodPhase::Pending, PodPhase::Running, PodPhase::Succeeded, PodPhase::Failed];
        facts.pod.phase = phases[phase];
        facts.pod.terminating = terminating;
        facts.pod.node = node.then(|| "n".into());
        facts.pod.role = [None, Some(Name::from("worker"))][role].clone();
        facts.pod.shape =
            Arc::new(Shape { requests: [("gpu".into(), gpus.into())].into(), ..Shape::default() });
        facts.topology = [TopologyRequest::NONE, TopologyRequest::required("rack".into())][topology].clone();
        facts.invalid = invalid.then(|| Invalid::new("metadata", "is odd"));
        facts.ready = ready;
        facts.priority = priority;
        facts.queue = [None, Some(Name::from("q")), Some(Name::from("other"))][shown].clone();
        facts.scheduled = [None, Some("0 of 3 nodes"), Some("no quota")][shown].map(|text| {
            ScheduledCondition { at: 0, is_false: true, reason: "Unschedulable".into(), message: text.into() }
        });
        facts
    })
}

/// What a look at every member says.
fn counted_anew(members: &[&PodFacts]) -> String {
    let is_well = |pod: &&&PodFacts| {
        pod.pod.node.is_some() && (pod.pod.phase == PodPhase::Succeeded || (pod.pod.is_live() && pod.ready))
    };
    let open = || members.iter().filter(|pod| pod.pod.phase != PodPhase::Succeeded);
    let there = |pod: &&&PodFacts| pod.pod.node.is_some() && !pod.pod.is_terminal();
    let mut untold: Vec<&Name> = members
        .iter()
        .filter(|pod| pod.waits_to_be_bound() && pod.shown_reason().as_deref() != Some(" of  nodes"))
        .map(|pod| &pod.pod.uid)
        .collect();
    untold.sort();
    format!(
        "priority {:?}, well {}, all ready {}, there {}, succeeded {}, queue {:?}, invalid {:?}, untold {untold:?}",
        open().map(|pod| pod.priority).max(),
        members.iter().filter(is_well).count(),
        members.iter().all(|pod| pod.pod.node.is_none() || !pod.pod.is_live() || pod.ready),
        members.iter().any(|pod| there(&pod)),
        members.iter().filter(|pod| pod.pod.phase == PodPhase::Succeeded).count(),
        members.iter().filter_map(|pod| pod.queue.as_ref()).min(),
        open().filter(|pod| pod.invalid.is_some()).map(|pod| &pod.pod.name).min(),
    )
}

fn told(roll: &Roll) -> String {
    let rolls = Rolls::from(roll);
    let mut untold: Vec<&Name> = rolls.untold(" of  nodes").collect();
    untold.sort();
    format!(
        "priority {:?}, well {}, all ready {}, there {}, succeeded {}, queue {:?}, invalid {:?}, untold {untold:?}",
        rolls.priority(),
        rolls.well(),
        rolls.all_ready(),
        rolls.any_there(),
        rolls.count(|phase| phase == PodPhase::Succeeded),
        rolls.queue(),
        rolls.invalid().map(|(name, _)| name),
    )
}

proptest! {
    #[test]
    fn a_roll_says_what_all_its_members_do(steps in prop::collection::vec((any_pod(), any::<bool>()), 1..40)) {
        let mut roll = Roll::default();
        let mut members: BTreeMap<Name, PodFacts> = BTreeMap::new();
        for (pod, stays) in steps {
            if let Some(before) = members.remove(&pod.pod.uid) {
                roll.remove(&before);
            }
            if stays {
                roll.add(&pod);
                members.insert(pod.pod.uid.clone(), pod);
            }
            prop_assert_eq!(&roll, &members.values().collect::<Roll>());
            prop_assert_eq!(told(&roll), counted_anew(&members.values().collect::<Vec<_>>()));
        }
        for pod in members.values() {
            roll.remove(pod);
        }
        prop_assert_eq!(roll, Roll::default());
    }

    #[test]
    fn members_on_two_rolls_are_told_as_if_on_one(pods in prop::collection::vec(any_pod(), 1..12)) {
        let pods: BTreeMap<Name, PodFacts> = pods.into_iter().map(|pod| (pod.pod.uid.clone(), pod)).collect();
        let (one, other): (Vec<_>, Vec<_>) = pods.values().partition(|pod| pod.pod.uid.as_ref() < "uid-6");
        let (one, other): (Roll, Roll) = (one.into_iter().collect(), other.into_iter().collect());
        let all: Roll = pods.values().collect();
        let both: Rolls<'_> = [&one, &other].into_iter().collect();
        let sets = super::super::pod_sets(&both, &[]);
        prop_assert_eq!(&sets, &super::super::pod_sets(&Rolls::from(&all), &[]));
        prop_assert_eq!(super::super::refused(&both, &sets), super::super::refused(&Rolls::from(&all), &sets));
    }
}
