//! The bounds on reasons.

use super::*;

type Told = Vec<(GangId, (&'static str, u32))>;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap()
}

fn reasons(per_second: u32) -> Reasons<&'static str, (&'static str, u32)> {
    Reasons::new(SignedDuration::from_secs(5), per_second, at(0))
}

fn want(
    reasons: &mut Reasons<&'static str, (&'static str, u32)>,
    gang: &str,
    kind: &'static str,
    n: u32,
    t: i64,
) {
    reasons.want(&gang.into(), kind, (kind, n), kind == "missing", at(t));
}

fn due(reasons: &mut Reasons<&'static str, (&'static str, u32)>, now: Timestamp) -> Told {
    reasons.due(now, |_| false)
}

fn told(list: Told) -> Vec<String> {
    list.into_iter().map(|(gang, (kind, number))| format!("{gang} {kind} {number}")).collect()
}

#[test]
fn a_new_kind_is_told_at_once_and_new_numbers_after_a_while() {
    let mut reasons = reasons(50);
    want(&mut reasons, "a", "quota", 1, 0);
    assert_eq!(told(due(&mut reasons, at(0))), ["a quota 1"]);
    want(&mut reasons, "a", "quota", 2, 1_000);
    assert_eq!(told(due(&mut reasons, at(1_000))), [""; 0]);
    assert_eq!(reasons.next_due(), Some(at(5_000)));
    want(&mut reasons, "a", "quota", 3, 2_000);
    assert_eq!(told(due(&mut reasons, at(4_999))), [""; 0]);
    assert_eq!(told(due(&mut reasons, at(5_000))), ["a quota 3"]);
    want(&mut reasons, "a", "place", 1, 5_001);
    assert_eq!(told(due(&mut reasons, at(5_001))), ["a place 1"]);
    assert_eq!(reasons.next_due(), None);
}

#[test]
fn what_is_missing_is_told_when_it_still_is_after_a_moment() {
    let mut reasons = reasons(50);
    want(&mut reasons, "a", "missing", 1, 1_000);
    want(&mut reasons, "b", "missing", 1, 1_000);
    assert_eq!(told(due(&mut reasons, at(1_499))), [""; 0]);
    assert_eq!(reasons.next_due(), Some(at(1_500)));
    want(&mut reasons, "a", "quota", 1, 1_100);
    want(&mut reasons, "b", "missing", 2, 1_200);
    assert_eq!(told(due(&mut reasons, at(1_200))), ["a quota 1"]);
    assert_eq!(told(due(&mut reasons, at(1_500))), ["b missing 2"]);
    assert_eq!(reasons.next_due(), None);
}

#[test]
fn what_goes_back_to_what_is_shown_is_not_written() {
    let mut reasons = reasons(50);
    want(&mut reasons, "a", "quota", 1, 0);
    due(&mut reasons, at(0));
    want(&mut reasons, "a", "quota", 2, 100);
    want(&mut reasons, "a", "quota", 1, 200);
    assert_eq!(told(due(&mut reasons, at(9_000))), [""; 0]);
}

#[test]
fn heads_go_first_and_all_together_keep_within_the_bound() {
    let mut reasons = reasons(2);
    for gang in ["a", "b", "c", "d", "e"] {
        want(&mut reasons, gang, "quota", 1, 0);
    }
    assert_eq!(due(&mut reasons, at(0)).len(), 5, "kinds do not wait");
    for gang in ["a", "b", "c", "d", "e"] {
        want(&mut reasons, gang, "quota", 2, 10_000);
    }
    let heads_first = reasons.due(at(10_000), |gang| **gang == *"d");
    assert_eq!(told(heads_first), ["d quota 2", "a quota 2"]);
    assert_eq!(told(due(&mut reasons, at(10_100))), [""; 0]);
    assert_eq!(reasons.next_due(), Some(at(10_500)));
    assert_eq!(told(due(&mut reasons, at(11_000))), ["b quota 2", "c quota 2"]);
    // New kinds come before numbers, and are not counted twice.
    want(&mut reasons, "a", "place", 1, 11_400);
    assert_eq!(told(due(&mut reasons, at(11_500))), ["a place 1"]);
    assert_eq!(told(due(&mut reasons, at(12_000))), ["e quota 2"]);
}

#[test]
fn what_was_forgotten_is_told_anew() {
    let mut reasons = reasons(50);
    want(&mut reasons, "a", "quota", 1, 0);
    due(&mut reasons, at(0));
    reasons.forget(&"a".into());
    want(&mut reasons, "a", "quota", 1, 100);
    assert_eq!(told(due(&mut reasons, at(100))), ["a quota 1"]);
}
