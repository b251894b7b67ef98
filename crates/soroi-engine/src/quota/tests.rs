//! What `quota` promises, as tests.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::kueue::{Tree, Usage};
use super::volcano;
use super::*;
use crate::event::{ClusterQueue, Cohort, FlavorQuotas, Fungibility, Quota, ResourceGroup, VolcanoQueue};

/// The one flavor resource of these trees.
fn gpu() -> FlavorResource {
    FlavorResource { flavor: "f".into(), resource: "gpu".into() }
}

fn groups(nominal: Amount, borrow: Option<Amount>, lend: Option<Amount>) -> Vec<ResourceGroup> {
    let quota = Quota { resource: "gpu".into(), nominal, borrowing_limit: borrow, lending_limit: lend };
    vec![ResourceGroup {
        covered: vec!["gpu".into()],
        flavors: vec![FlavorQuotas { flavor: "f".into(), quotas: vec![quota] }],
    }]
}

fn cohort(name: &str, parent: Option<&str>, groups: Vec<ResourceGroup>) -> Cohort {
    Cohort { name: name.into(), parent: parent.map(Into::into), groups, weight_milli: 1000 }
}

fn queue(name: &str, cohort: Option<&str>, groups: Vec<ResourceGroup>) -> ClusterQueue {
    ClusterQueue {
        name: name.into(),
        cohort: cohort.map(Into::into),
        namespace_selector: None,
        strategy: Default::default(),
        stop: Default::default(),
        groups,
        fungibility: Fungibility { stop_at_borrow: true, stop_at_preempt: false, prefer_preemption: false },
        preemption: Default::default(),
        weight_milli: 1000,
        placement: None,
        packing: None,
        inactive: None,
    }
}

/// `queue a in team: 4 borrow 1 lend 2, used 3`, `cohort team in org: 2`.
fn tree(text: &str) -> Tree {
    let mut tree = Tree::default();
    let mut used = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (head, quota) = line.split_once(':').unwrap_or((line, ""));
        let words: Vec<&str> = head.split_whitespace().collect();
        let (kind, name) = (words[0], words[1]);
        let above = words.iter().position(|word| *word == "in").map(|at| words[at + 1]);
        let numbers: Vec<&str> = quota.split([' ', ',']).filter(|word| !word.is_empty()).collect();
        let after = |word: &str| {
            numbers.iter().position(|w| *w == word).map(|at| numbers[at + 1].parse::<Amount>().unwrap())
        };
        let own = match numbers.first().map(|n| n.parse()) {
            Some(Ok(nominal)) => groups(nominal, after("borrow"), after("lend")),
            _ => Vec::new(),
        };
        match kind {
            "queue" => _ = tree.set_queue(queue(name, above, own)),
            _ => _ = tree.set_cohort(cohort(name, above, own)),
        }
        used.extend(after("used").map(|sum| (name.to_owned(), sum)));
    }
    tree.refresh();
    for (name, sum) in used {
        tree.change(&name.as_str().into(), &gpu(), sum.into());
    }
    tree
}

/// Per queue: what it could use now, and at most.
fn check(text: &str, expected: Expect) {
    let tree = tree(text);
    let mut table = String::new();
    for queue in tree.queues() {
        let (available, most) = (tree.available(&queue.name, &gpu()), tree.potential(&queue.name, &gpu()));
        let borrowed = tree.borrowed(&queue.name, &gpu());
        let _ = writeln!(table, "{}: {available} of {most} available, {borrowed} borrowed", queue.name);
    }
    expected.assert_eq(&table);
}

#[test]
fn alone_a_queue_has_its_own() {
    check(
        "queue a: 4, used 3",
        expect![[r#"
        a: 1 of 4 available, 0 borrowed
    "#]],
    );
    check(
        "queue a: 4, used 6",
        expect![[r#"
        a: 0 of 4 available, 0 borrowed
    "#]],
    );
}

#[test]
fn in_a_cohort_it_borrows_what_others_do_not_use() {
    check(
        "queue a in c: 4, used 3\nqueue b in c: 4\nqueue d in c: 0",
        expect![[r#"
        a: 5 of 8 available, 0 borrowed
        b: 5 of 8 available, 0 borrowed
        d: 5 of 8 available, 0 borrowed
    "#]],
    );
    check(
        "queue a in c: 4 borrow 1\nqueue b in c: 4",
        expect![[r#"
        a: 5 of 5 available, 0 borrowed
        b: 8 of 8 available, 0 borrowed
    "#]],
    );
    check(
        "queue a in c: 4\nqueue b in c: 4 lend 1",
        expect![[r#"
        a: 5 of 5 available, 0 borrowed
        b: 8 of 8 available, 0 borrowed
    "#]],
    );
    check(
        "queue a in c: 4\nqueue b in c: 4 lend 1, used 4",
        expect![[r#"
        a: 4 of 5 available, 0 borrowed
        b: 4 of 8 available, 0 borrowed
    "#]],
    );
    check(
        "queue a in c: 4, used 7\nqueue b in c: 4 lend 3, used 1",
        expect![[r#"
        a: 0 of 7 available, 3 borrowed
        b: 0 of 8 available, 0 borrowed
    "#]],
    );
}

#[test]
fn cohorts_have_quota_and_limits_of_their_own() {
    check(
        "cohort c: 3\nqueue a in c: 0",
        expect![[r#"
        a: 3 of 3 available, 0 borrowed
    "#]],
    );
    check(
        "cohort org: 0\ncohort left in org: 2 borrow 1\ncohort right in org: 4 lend 3
         queue a in left: 1\nqueue b in right: 1, used 2",
        expect![[r#"
            a: 4 of 4 available, 0 borrowed
            b: 6 of 8 available, 1 borrowed
        "#]],
    );
    check(
        "cohort x in y\ncohort y in z\nqueue a in x: 2\nqueue b in z: 2, used 1\nqueue c in y: 2 lend 0",
        expect![[r#"
            a: 3 of 4 available, 0 borrowed
            b: 3 of 4 available, 0 borrowed
            c: 5 of 6 available, 0 borrowed
        "#]],
    );
}

#[test]
fn a_cycle_is_found_and_harms_nobody_else() {
    let tree = tree(
        "cohort x in y\ncohort y in x\nqueue a in x: 2\nqueue b in z: 2\nqueue c in w: 1\ncohort w in x",
    );
    assert_eq!(tree.cycle(&"a".into()).as_deref(), Some("x"));
    assert_eq!(tree.cycle(&"c".into()).as_deref(), Some("x"), "leading into a cycle is as bad");
    assert_eq!(tree.cycle(&"b".into()), None);
    assert_eq!(tree.available(&"b".into(), &gpu()), 2);
}

#[test]
fn how_high_it_borrows() {
    let tree = tree("cohort org: 9\ncohort team in org\nqueue a in team: 2, used 1\nqueue b in team: 3");
    let height = |amount| tree.borrow_height(&"a".into(), &gpu(), amount);
    assert_eq!([height(1), height(2), height(4), height(5), height(99)], [0, 1, 1, 2, 2]);
}

#[test]
fn absurd_amounts_neither_overflow_nor_lose_anything() {
    let most = Amount::MAX;
    let mut tree = tree(&format!(
        "queue a in c: {most}\nqueue b in c: {most} borrow {most} lend {most}\ncohort c: {most}"
    ));
    for _ in 0..3 {
        tree.change(&"a".into(), &gpu(), most.into());
    }
    assert_eq!(tree.available(&"b".into(), &gpu()), 0);
    for _ in 0..2 {
        tree.change(&"a".into(), &gpu(), -Sum::from(most));
    }
    assert_eq!(tree.used(&"a".into(), &gpu()), most.into());
    assert_eq!(saturate(tree.available(&"b".into(), &gpu())), most);
    assert_eq!([saturate(Sum::MAX), saturate(Sum::MIN)], [Amount::MAX, Amount::MIN]);
}

#[test]
fn volcano_ceilings_at_every_level() {
    let mut tree = volcano::Tree::default();
    let queue = |name: &str, parent: Option<&str>, ceiling: Option<Amount>, open| VolcanoQueue {
        name: name.into(),
        parent: parent.map(Into::into),
        capability: ceiling.map(|amount| (Name::from("gpu"), amount)).into_iter().collect(),
        guarantee: BTreeMap::new(),
        priority: 0,
        open,
        invalid: None,
    };
    tree.set(queue("root", None, None, true));
    tree.set(queue("team", Some("root"), Some(3), true));
    tree.set(queue("dev", Some("team"), Some(2), true));
    tree.set(queue("shut", None, None, false));
    tree.set(queue("loop", Some("loop"), Some(1), true));
    tree.change(&"team".into(), &"gpu".into(), 2);
    let ask = |queue: &str, amount| {
        let need = BTreeMap::from([(Name::from("gpu"), amount)]);
        match tree.room(&queue.into(), &need) {
            Ok(_) => format!("{queue} {amount}: room"),
            Err(no) => format!("{queue} {amount}: {} {:?}", no.queue, no.problem),
        }
    };
    let answers = [
        ask("dev", 1),
        ask("dev", 2),
        ask("dev", 3),
        ask("root", 99),
        ask("shut", 1),
        ask("none", 1),
        ask("loop", 2),
    ];
    expect![[r#"
        dev 1: room
        dev 2: team OverCapability { resource: "gpu", short: 1 }
        dev 3: dev OverCapability { resource: "gpu", short: 1 }
        root 99: room
        shut 1: shut Closed
        none 1: none Missing
        loop 2: loop OverCapability { resource: "gpu", short: 1 }"#]]
    .assert_eq(&answers.join("\n"));
}

/// The cohort above, nominal quota, borrowing and lending limit.
type Node = (Option<usize>, Amount, Option<Amount>, Option<Amount>);

/// A tree of up to three levels, with everything that it can have.
#[derive(Clone, Debug)]
struct Random {
    cohorts: Vec<Node>,
    queues: Vec<Node>,
}

fn random() -> impl Strategy<Value = Random> {
    let limit = || prop::option::of(0..6i64);
    let node = move |above: usize| (prop::option::of(0..above), 0..6i64, limit(), limit());
    (prop::collection::vec(node(3), 3), prop::collection::vec(node(3), 1..5)).prop_map(
        |(mut cohorts, queues)| {
            // A cohort hangs below one of a lower number: no cycles.
            for (at, cohort) in cohorts.iter_mut().enumerate() {
                cohort.0 = cohort.0.filter(|parent| *parent < at);
            }
            Random { cohorts, queues }
        },
    )
}

impl Random {
    fn tree(&self) -> Tree {
        let mut tree = Tree::default();
        let name = |at: usize| format!("c{at}");
        for (at, (parent, nominal, borrow, lend)) in self.cohorts.iter().enumerate() {
            let groups =
                groups(*nominal, borrow.filter(|_| parent.is_some()), lend.filter(|_| parent.is_some()));
            tree.set_cohort(cohort(&name(at), parent.map(name).as_deref(), groups));
        }
        for (at, (parent, nominal, borrow, lend)) in self.queues.iter().enumerate() {
            let groups =
                groups(*nominal, borrow.filter(|_| parent.is_some()), lend.filter(|_| parent.is_some()));
            tree.set_queue(queue(&format!("q{at}"), parent.map(name).as_deref(), groups));
        }
        tree.refresh();
        tree
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Using no more than what is available never overdraws anybody, whatever was used before; and
    /// one more than that would.
    #[test]
    fn what_is_available_is_safe_and_all(random in random(), uses in prop::collection::vec((0..5usize, 0..9i64), 0..12)) {
        let mut tree = random.tree();
        let names: Vec<Name> = tree.queues().map(|queue| queue.name.clone()).collect();
        let overdrawn = |tree: &Tree| names.iter().any(|queue| tree.headroom(queue, Usage::Now).iter().any(|(_, left)| *left < 0));
        for (which, amount) in uses {
            let queue = &names[which % names.len()];
            let available = tree.available(queue, &gpu());
            prop_assert!(available <= tree.potential(queue, &gpu()));
            let amount = Sum::from(amount).min(available);
            tree.change(queue, &gpu(), amount);
            prop_assert!(!overdrawn(&tree));
            let mut more = tree.clone();
            more.change(queue, &gpu(), available - amount + 1);
            prop_assert!(overdrawn(&more), "one more than available fits too");
        }
    }

    /// What is kept incrementally is what building anew gives, and giving everything back leaves
    /// nothing.
    #[test]
    fn changes_add_up(random in random(), changes in prop::collection::vec((0..5usize, -9..20i64), 0..20)) {
        let mut tree = random.tree();
        let names: Vec<Name> = tree.queues().map(|queue| queue.name.clone()).collect();
        for (which, delta) in changes {
            let queue = &names[which % names.len()];
            let delta = Sum::from(delta).max(-tree.used(queue, &gpu()));
            tree.change(queue, &gpu(), delta);
            let mut anew = tree.clone();
            anew.rebuild();
            prop_assert_eq!(tree.sums(), anew.sums());
        }
        for queue in &names {
            let used = tree.used(queue, &gpu());
            tree.change(queue, &gpu(), -used);
        }
        prop_assert_eq!(tree.all_used().count(), 0);
        prop_assert!(tree.sums().iter().all(|(_, _, _, _, used)| *used == 0));
    }
}

#[test]
fn shares_are_kueues() {
    let mut tree = tree(
        "
        queue a in team: 0, used 1
        queue b in team: 6, used 2
        queue c in team: 0, used 0
        queue alone: 2, used 2
        cohort team in org: 0
        queue far in org: 6, used 0
        ",
    );
    // 1 of 12 that could be lent, rounded up; b uses less than its own.
    let share = |tree: &Tree, queue: &str| tree.queue_share(&queue.into());
    assert_eq!(
        ["a", "b", "c", "alone", "nobody"].map(|queue| share(&tree, queue)),
        [Some(84), Some(0), Some(0), Some(0), None]
    );
    assert_eq!(tree.cohort_share(&"org".into()), Some(0));
    // Half the weight counts double; without any, whoever borrows comes last.
    for (weight, expected) in [(500, 167), (2_000, 42), (0, i64::MAX)] {
        let mut heavy = tree.queue(&"a".into()).unwrap().clone();
        heavy.weight_milli = weight;
        tree.set_queue(heavy);
        tree.refresh();
        assert_eq!(share(&tree, "a"), Some(expected), "weight {weight}");
    }
}

#[test]
fn what_is_promised_is_nobody_elses() {
    let mut tree = tree("queue a in team: 4, used 4\nqueue b in team: 4, used 2");
    let left = |tree: &Tree| ["a", "b"].map(|queue| tree.available(&queue.into(), &gpu()));
    assert_eq!(left(&tree), [2, 2]);
    // A gang of a gives 3 to one of b that needs 4: now nobody has more than the 2 that are free, and when it
    // has left there are 1.
    tree.promise(&"a".into(), &gpu(), -3);
    tree.promise(&"b".into(), &gpu(), 4);
    assert_eq!(left(&tree), [1, 1]);
    assert_eq!(tree.available_now(&"b".into(), &gpu()), 2);
    // It has left, and the other has come.
    tree.change(&"a".into(), &gpu(), -3);
    tree.promise(&"a".into(), &gpu(), 3);
    tree.change(&"b".into(), &gpu(), 4);
    tree.promise(&"b".into(), &gpu(), -4);
    assert_eq!(left(&tree), [1, 1]);
    assert_eq!(tree.all_promised().count(), 0);
}
