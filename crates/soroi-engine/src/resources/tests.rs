//! What `resources` promises, as tests.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Requests, ResourceIx, ResourceNames, Space};
use crate::event::{Amount, Name};

fn amounts(pairs: &[(&str, Amount)]) -> BTreeMap<Name, Amount> {
    pairs.iter().map(|(name, amount)| (Name::from(*name), *amount)).collect()
}

fn space(names: &mut ResourceNames, pairs: &[(&str, Amount)]) -> Space {
    let mut space = Space::default();
    space.set_allocatable(&amounts(pairs), names);
    space
}

#[test]
fn names_are_numbered_once() {
    let mut names = ResourceNames::default();
    let gpu = names.intern(&"gpu".into());
    assert_eq!(names.intern(&"gpu".into()), gpu);
    assert_eq!(names.intern(&"pods".into()), ResourceIx::PODS);
    assert_eq!(&**names.name(gpu), "gpu");
}

#[test]
fn how_many_fit() {
    type Amounts = &'static [(&'static str, Amount)];
    let table: &[(Amounts, Amounts, u32)] = &[
        (&[("pods", 3)], &[], 3),
        (&[("pods", 0)], &[], 0),
        (&[], &[], 0),
        (&[("pods", -1)], &[], 0),
        (&[("pods", 9), ("gpu", 7)], &[("gpu", 2)], 3),
        (&[("pods", 2), ("gpu", 7)], &[("gpu", 2)], 2),
        (&[("pods", 9), ("gpu", 7)], &[("gpu", 8)], 0),
        (&[("pods", 9), ("gpu", 7)], &[("tpu", 1)], 0),
        // Who asks for nothing (or less) does not ask.
        (&[("pods", 9)], &[("gpu", 0)], 9),
        (&[("pods", 9)], &[("gpu", -5)], 9),
        (&[("pods", 9), ("a", 6), ("b", 5), ("c", 8)], &[("c", 4), ("a", 2)], 2),
        (&[("pods", Amount::MAX), ("gpu", Amount::MAX)], &[("gpu", 1)], u32::MAX),
        (&[("pods", 9), ("gpu", Amount::MAX)], &[("gpu", Amount::MAX)], 1),
        (&[("pods", 9)], &[("pods", 2)], 3),
    ];
    for (allocatable, requests, expected) in table {
        let mut names = ResourceNames::default();
        let space = space(&mut names, allocatable);
        let requests = Requests::of_pod(&amounts(requests), &mut names);
        assert_eq!(space.fit_count(&requests), *expected, "{requests:?} into {allocatable:?}");
    }
}

#[test]
fn what_is_short_is_named() {
    let mut names = ResourceNames::default();
    let mut space = space(&mut names, &[("pods", 1), ("gpu", 4), ("cpu", 4)]);
    let large = Requests::of_pod(&amounts(&[("gpu", 5), ("cpu", 4), ("tpu", 1)]), &mut names);
    let short = |space: &Space, names: &ResourceNames| {
        space.short(&large).map(|resource| names.name(resource).to_string()).collect::<Vec<_>>()
    };
    assert_eq!(short(&space, &names), ["gpu", "tpu"]);
    space.charge(&Requests::of_pod(&amounts(&[]), &mut names), 1);
    assert_eq!(short(&space, &names), ["pods", "gpu", "tpu"]);
}

#[test]
fn a_node_may_shrink_below_what_runs_there() {
    let mut names = ResourceNames::default();
    let gpu = names.intern(&"gpu".into());
    let mut space = space(&mut names, &[("pods", 10), ("gpu", 8)]);
    let two = Requests::of_pod(&amounts(&[("gpu", 2)]), &mut names);
    space.charge(&two, 4);
    space.set_allocatable(&amounts(&[("pods", 10), ("gpu", 4)]), &mut names);
    assert_eq!((space.free(gpu), space.fit_count(&two)), (-4, 0));
    space.set_allocatable(&amounts(&[("pods", 10)]), &mut names);
    assert_eq!(space.free(gpu), -8);
    space.uncharge(&two, 4);
    assert_eq!(space.free(gpu), 0);
    let mut never_seen = Space::default();
    never_seen.set_allocatable(&amounts(&[("pods", 10)]), &mut names);
    assert_eq!(space, never_seen);
}

proptest! {
    /// In whatever order: what was taken and given back leaves exactly the rest, however absurd.
    #[test]
    fn amounts_are_exact(
        allocatable in any::<i64>(),
        requests in prop::collection::vec((any::<i64>(), 0..1000u32), 0..8),
        keep in 0..8usize,
    ) {
        let mut names = ResourceNames::default();
        let mut space = space(&mut names, &[("pods", i64::MAX), ("x", allocatable)]);
        let parsed: Vec<_> = requests
            .iter()
            .map(|(amount, count)| (Requests::of_pod(&amounts(&[("x", *amount)]), &mut names), *count))
            .collect();
        for (requests, count) in &parsed {
            space.charge(requests, *count);
        }
        for (requests, count) in parsed.iter().skip(keep).rev() {
            space.uncharge(requests, *count);
        }
        let used: i128 = requests.iter().take(keep).map(|(amount, count)| i128::from(*amount.max(&0)) * i128::from(*count)).sum();
        let free = i128::from(allocatable) - used;
        let x = names.intern(&"x".into());
        prop_assert_eq!(i128::from(space.free(x)), free.clamp(i64::MIN.into(), i64::MAX.into()));
    }
}
