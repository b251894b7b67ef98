//! What is kept is there when it is asked for, and nothing else is held back.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::event::{Amount, VolcanoQueue};

fn gpu() -> Name {
    "gpu".into()
}

fn queue(name: &str, parent: &str, guarantee: Amount) -> VolcanoQueue {
    VolcanoQueue {
        name: name.into(),
        parent: (name != ROOT).then(|| parent.into()),
        capability: BTreeMap::new(),
        guarantee: BTreeMap::from([(gpu(), guarantee)]),
        priority: 0,
        open: true,
        invalid: None,
    }
}

/// `total`, and queues as `name below parent keeps guarantee`.
fn tree(total: Sum, queues: &[(&str, &str, Amount)]) -> Tree {
    let mut tree = Tree::default();
    tree.change_total(&gpu(), total);
    for (name, parent, guarantee) in queues {
        tree.set(queue(name, parent, *guarantee));
    }
    tree
}

fn left(tree: &Tree, queue: &str) -> Sum {
    tree.room_for(&queue.into(), &gpu())
}

#[test]
fn what_is_kept_for_one_is_kept_from_all_others_together() {
    let mut tree = tree(10, &[("a", ROOT, 4), ("b", ROOT, 0), ("c", ROOT, 0)]);
    let all = |tree: &Tree| ["a", "b", "c"].map(|queue| left(tree, queue));
    assert_eq!(all(&tree), [10, 6, 6]);
    tree.change(&"b".into(), &gpu(), 6);
    // Volcano would let c have 4 of the 6 that each of the others may have.
    assert_eq!(all(&tree), [4, 0, 0]);
    tree.change(&"a".into(), &gpu(), 3);
    assert_eq!(all(&tree), [1, 0, 0]);
    // Fewer than are kept: who uses less than what is kept for it still may.
    tree.change_total(&gpu(), -5);
    assert_eq!(all(&tree), [1, 0, 0]);
    tree.change_total(&gpu(), 7);
    assert_eq!(all(&tree), [3, 2, 2]);
}

#[test]
fn what_is_kept_for_a_team_is_for_all_of_it() {
    let queues = [("team", ROOT, 6), ("dev", "team", 2), ("ci", "team", 0), ("other", ROOT, 0)];
    let mut tree = tree(8, &queues);
    let all = |tree: &Tree| ["dev", "ci", "team", "other"].map(|queue| left(tree, queue));
    assert_eq!(all(&tree), [8, 6, 6, 2]);
    tree.change(&"ci".into(), &gpu(), 4);
    assert_eq!(all(&tree), [4, 2, 2, 2]);
    tree.change(&"other".into(), &gpu(), 2);
    assert_eq!(all(&tree), [2, 0, 0, 0]);
}

#[test]
fn where_nothing_is_kept_for_others_nothing_is_held_back() {
    let mut tree = tree(4, &[("a", ROOT, 0), ("b", ROOT, 0)]);
    let bound = |tree: &Tree, queue: &str| tree.left_beside_guarantees(&queue.into(), &gpu());
    assert_eq!(bound(&tree, "a"), None);
    tree.set(queue("b", ROOT, 1));
    assert_eq!((bound(&tree, "a"), bound(&tree, "b")), (Some(3), None));
    // What it uses is in nobody's way but by being there, which nodes know better.
    tree.change(&"b".into(), &gpu(), 2);
    assert_eq!((bound(&tree, "a"), bound(&tree, "b")), (None, None));
    // A queue that is not there any more keeps nothing; what its gangs use is used.
    tree.set(queue("c", ROOT, 1));
    tree.remove(&"b".into());
    assert_eq!((left(&tree, "a"), left(&tree, "c")), (1, 2));
}

#[test]
fn what_hangs_below_a_queue_that_is_missing_counts_all_the_same() {
    let mut tree = tree(6, &[("a", "nobody", 2), ("b", ROOT, 0)]);
    tree.change(&"nowhere".into(), &gpu(), 1);
    assert_eq!((left(&tree, "a"), left(&tree, "b")), (5, 3));
}

#[test]
fn queues_in_a_circle_do_no_harm() {
    let tree = tree(4, &[("a", "b", 2), ("b", "a", 1), ("self", "self", 1), ("c", ROOT, 1)]);
    assert_eq!(["a", "self", "c"].map(|queue| left(&tree, queue)), [6, 4, 4]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever was taken within what was left, all together take no more than there is, every queue still can
    /// have what is kept for it, and one more than is left would be taken from somebody.
    #[test]
    fn what_is_left_is_safe_and_all(
        queues in prop::collection::vec((0..6usize, 0..4i64), 1..7),
        spare in 0..5i128,
        takes in prop::collection::vec((0..7usize, 0..6i128), 0..12),
    ) {
        // A queue hangs below one of a lower number, so that there are no circles.
        let name = |at: usize| if at == 0 { ROOT.to_owned() } else { format!("q{at}") };
        let mut tree = Tree::default();
        for (at, (above, guarantee)) in queues.iter().enumerate() {
            tree.set(queue(&name(at + 1), &name(above % (at + 1)), *guarantee));
        }
        if tree.reserved.is_empty() {
            return Ok(());
        }
        let kept = tree.wanted(&ROOT.into(), &gpu());
        let total = kept + spare;
        tree.change_total(&gpu(), total);
        for (which, amount) in takes {
            let at = name(1 + which % queues.len());
            let most = left(&tree, &at);
            let mut more = tree.clone();
            more.change(&at.as_str().into(), &gpu(), most + 1);
            prop_assert!(more.wanted(&ROOT.into(), &gpu()) > total);
            tree.change(&at.as_str().into(), &gpu(), amount.min(most));
            prop_assert!(tree.wanted(&ROOT.into(), &gpu()) <= total);
            for (at, (_, guarantee)) in queues.iter().enumerate() {
                let at = name(at + 1);
                let used = tree.used(&at.as_str().into(), &gpu());
                let unused = Sum::from(*guarantee) - used;
                let below = tree.children.get(at.as_str()).is_some_and(|below| !below.is_empty());
                prop_assert!(below || left(&tree, &at) >= unused);
            }
        }
    }
}
