//! What `queue` promises, as tests.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::quota::{FlavorResource, Quotas};
use crate::reason::Reason;

fn turn(name: &str, priority: i32, queued_at: Millis) -> Turn {
    let (namespace, id) = ("ns".into(), name.into());
    Turn { priority: Reverse(priority), queued_at, namespace, name: name.into(), id }
}

fn line() -> LineKey {
    LineKey::ClusterQueue("cq".into())
}

fn no(blockers: impl IntoIterator<Item = Blocker>) -> Certificate {
    Certificate { reason: Reason::NamespaceMismatch.into(), blockers: blockers.into_iter().collect() }
}

fn head(waiting: &mut Waiting<&'static str>) -> Option<String> {
    waiting.head(&line()).map(|(turn, _)| turn.name.to_string())
}

#[test]
fn priority_then_time_then_name() {
    let mut waiting = Waiting::default();
    for (name, priority, at) in [("b", 0, 1), ("a", 0, 1), ("old", 0, 0), ("vip", 5, 9)] {
        waiting.join(line(), QueueingStrategy::BestEffortFifo, turn(name, priority, at), "one");
    }
    let mut order = Vec::new();
    while let Some(name) = head(&mut waiting) {
        waiting.leave(&name.as_str().into());
        order.push(name);
    }
    assert_eq!(order, ["vip", "old", "a", "b"]);
    assert!(waiting.is_empty() && waiting.lines().next().is_none(), "an empty line is forgotten");
}

#[test]
fn equal_wants_sleep_and_wake_together() {
    let mut waiting = Waiting::default();
    for (name, ask) in [("a", "large"), ("b", "large"), ("c", "small"), ("d", "large")] {
        waiting.join(line(), QueueingStrategy::BestEffortFifo, turn(name, 0, 0), ask);
    }
    let (_, want) = waiting.head(&line()).unwrap();
    waiting.certify(want, no([]));
    assert_eq!(head(&mut waiting).as_deref(), Some("c"), "a and b sleep");
    waiting.join(line(), QueueingStrategy::BestEffortFifo, turn("e", 9, 0), "large");
    assert_eq!(head(&mut waiting).as_deref(), Some("c"), "so does who comes later and wants the same");
    waiting.wake(want);
    assert_eq!(head(&mut waiting).as_deref(), Some("e"));
}

#[test]
fn who_is_first_in_a_line_and_of_a_want_that_sleeps() {
    let mut waiting = Waiting::default();
    for (name, ask) in [("a", "large"), ("b", "small"), ("c", "small")] {
        waiting.join(line(), QueueingStrategy::BestEffortFifo, turn(name, 0, 0), ask);
    }
    let first = |waiting: &Waiting<&'static str>| {
        ["a", "b", "c", "gone"].into_iter().filter(|id| waiting.is_first(&(*id).into())).collect::<Vec<_>>()
    };
    assert_eq!(first(&waiting), ["a"]);
    let (_, large) = waiting.head(&line()).unwrap();
    waiting.certify(large, no([]));
    assert_eq!(first(&waiting), ["a"], "who sleeps is still the first");
    let (_, small) = waiting.head(&line()).unwrap();
    let sleeper = |waiting: &Waiting<&'static str>, want| {
        waiting.sleeper(want).map(|turn: &Turn| turn.name.to_string())
    };
    assert_eq!(sleeper(&waiting, small), None, "it is awake");
    waiting.certify(small, no([]));
    assert_eq!(sleeper(&waiting, small).as_deref(), Some("b"));
    waiting.leave(&"a".into());
    assert_eq!(first(&waiting), ["b"]);
    assert_eq!(sleeper(&waiting, large), None, "nobody wants that any more");
    assert_eq!(sleeper(&waiting, 99), None);
}

#[test]
fn all_gangs_of_a_want_are_told_when_the_kind_is_new() {
    let mut waiting = Waiting::default();
    waiting.join(line(), QueueingStrategy::BestEffortFifo, turn("a", 0, 0), "one");
    let (_, want) = waiting.head(&line()).unwrap();
    let pausing =
        |until| Certificate { reason: Reason::BackingOff { until }.into(), blockers: BTreeSet::new() };
    let rows = [(no([]), false), (no([]), true), (pausing(1), false), (pausing(2), true), (no([]), false)];
    for (at, (certificate, known)) in rows.into_iter().enumerate() {
        waiting.certify(want, certificate);
        assert_eq!(waiting.tell(want), known, "row {at}");
    }
}

#[test]
fn the_first_of_a_strict_line_blocks_it() {
    let mut waiting = Waiting::default();
    let strict = QueueingStrategy::StrictFifo;
    waiting.join(line(), strict, turn("first", 0, 0), "large");
    waiting.join(line(), strict, turn("next", 0, 1), "small");
    let (_, want) = waiting.head(&line()).unwrap();
    waiting.certify(want, no([]));
    assert_eq!(head(&mut waiting), None);
    assert_eq!(waiting.strict_head(&line()).map(|turn| &*turn.name), Some("first"));
    waiting.leave(&"first".into());
    assert_eq!(head(&mut waiting).as_deref(), Some("next"));
    waiting.join(line(), strict, turn("first", 0, 0), "large");
    let (_, want) = waiting.head(&line()).unwrap();
    waiting.certify(want, no([]));
    waiting.join(line(), QueueingStrategy::BestEffortFifo, turn("first", 0, 0), "large");
    assert_eq!(head(&mut waiting).as_deref(), Some("next"), "its queue lets others pass now");
}

/// What happens to a line, in small numbers.
#[derive(Clone, Debug)]
enum Step {
    Join(u8, u8, i32),
    Leave(u8),
    Decide,
    Wake(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..9u8, 0..4u8, 0..3i32).prop_map(|(gang, ask, priority)| Step::Join(gang, ask, priority)),
        2 => (0..9u8).prop_map(Step::Leave),
        3 => Just(Step::Decide),
        1 => (0..4u8).prop_map(Step::Wake),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The head is always the first gang whose want is not known to be impossible; in a strict line
    /// only if nobody stands before it. Compared with a list.
    #[test]
    fn the_head_is_the_first_who_may(steps in prop::collection::vec(step(), 0..60), strict in any::<bool>()) {
        let strategy = if strict { QueueingStrategy::StrictFifo } else { QueueingStrategy::BestEffortFifo };
        let mut waiting: Waiting<u8> = Waiting::default();
        let mut list: BTreeMap<Turn, u8> = BTreeMap::new();
        let mut impossible: BTreeSet<u8> = BTreeSet::new();
        for step in steps {
            match step {
                Step::Join(gang, ask, priority) => {
                    let turn = turn(&format!("g{gang}"), priority, 0);
                    if list.get(&turn) == Some(&ask) {
                        continue;
                    }
                    list.retain(|known, _| known.id != turn.id);
                    impossible.retain(|ask| list.values().any(|known| known == ask));
                    list.insert(turn.clone(), ask);
                    waiting.join(line(), strategy, turn, ask);
                }
                Step::Leave(gang) => {
                    let id: GangId = format!("g{gang}").as_str().into();
                    waiting.leave(&id);
                    list.retain(|known, _| known.id != id);
                    // Nobody wants it any more: what was known of it is forgotten.
                    impossible.retain(|ask| list.values().any(|known| known == ask));
                }
                Step::Decide => {
                    if let Some((_, want)) = waiting.head(&line()) {
                        impossible.insert(*waiting.ask(want));
                        waiting.certify(want, no([]));
                    }
                }
                Step::Wake(ask) => {
                    let want = waiting.line(&line()).map(|(_, want)| want).find(|want| *waiting.ask(*want) == ask);
                    want.into_iter().for_each(|want| waiting.wake(want));
                    impossible.remove(&ask);
                }
            }
            let first = list.iter().find(|(_, ask)| strict || !impossible.contains(ask));
            let expected = first.filter(|(_, ask)| !impossible.contains(ask)).map(|(turn, _)| turn.clone());
            let head = waiting.head(&line()).map(|(turn, _)| turn);
            prop_assert_eq!(&head, &expected);
            prop_assert_eq!(waiting.awake_lines().count(), usize::from(head.is_some()));
            prop_assert_eq!(waiting.len(), list.len());
        }
    }

    /// Exactly those wants wake whose blockers do not hold any more.
    #[test]
    fn quota_wakes_whom_it_helps(
        needs in prop::collection::vec((0..2usize, 1..9i64, any::<bool>()), 1..12),
        uses in prop::collection::vec((0..2usize, -4..5i64), 1..12),
    ) {
        let names: [Name; 2] = ["q0".into(), "q1".into()];
        let what = FlavorResource { flavor: "f".into(), resource: "gpu".into() };
        let mut quotas = Quotas::default();
        for name in &names {
            quotas.kueue.set_queue(crate::queue::tests::queue(name, 6));
        }
        quotas.kueue.refresh();
        let mut waiting: Waiting<usize> = Waiting::default();
        let mut wants = Vec::new();
        for (at, (queue, needed, short)) in needs.into_iter().enumerate() {
            waiting.join(line(), QueueingStrategy::BestEffortFifo, turn(&format!("g{at}"), 0, 0), at);
            let want = waiting.line(&line()).find(|(_, want)| *waiting.ask(*want) == at).unwrap().1;
            let root = quotas.kueue.root(&names[queue]).unwrap();
            let blocker = QuotaBlocker { root, what: what.clone(), queue: names[queue].clone(), needed: needed.into() };
            let blocker = if short { Blocker::QuotaShort(blocker) } else { Blocker::QuotaEnough(blocker) };
            waiting.certify(want, no([blocker]));
            wants.push((want, queue, needed, short));
        }
        for (queue, delta) in uses {
            let delta = i128::from(delta).max(-quotas.kueue.used(&names[queue], &what));
            quotas.kueue.change(&names[queue], &what, delta);
            let falsified = waiting.certificates().falsified_by_quota(&mut quotas);
            for (want, queue, needed, short) in &wants {
                let available = quotas.kueue.available(&names[*queue], &what);
                let holds = if *short { available < i128::from(*needed) } else { available >= i128::from(*needed) };
                prop_assert!(holds || falsified.contains(want));
                prop_assert!(!holds || !falsified.contains(want));
            }
        }
    }
}

fn queue(name: &Name, nominal: i64) -> crate::event::ClusterQueue {
    use crate::event::{ClusterQueue, FlavorQuotas, Fungibility, Quota, ResourceGroup};
    let quota = Quota { resource: "gpu".into(), nominal, borrowing_limit: None, lending_limit: None };
    ClusterQueue {
        name: name.clone(),
        cohort: Some("team".into()),
        namespace_selector: None,
        strategy: Default::default(),
        stop: Default::default(),
        groups: vec![ResourceGroup {
            covered: vec!["gpu".into()],
            flavors: vec![FlavorQuotas { flavor: "f".into(), quotas: vec![quota] }],
        }],
        fungibility: Fungibility { stop_at_borrow: true, stop_at_preempt: false, prefer_preemption: false },
        preemption: Default::default(),
        weight_milli: 1000,
        placement: None,
        packing: None,
        inactive: None,
    }
}
