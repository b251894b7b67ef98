//! Fair sharing: whose turn it is, who has to give, and what everybody can rely on.

use expect_test::expect;
use proptest::prelude::*;

use super::board::{Auto, Board};
use super::script::{command, run};
use crate::decision::Settings;
use crate::event::Name;
use crate::preempt::FairRule;
use crate::quota::FlavorResource;

fn fair() -> Board {
    let rules = vec![FairRule::LessThanOrEqualToFinalShare, FairRule::LessThanInitialShare];
    let mut board = Board::with(Settings { fair_sharing: Some(rules), ..Settings::default() });
    board.auto = Auto::ALL;
    board
}

fn check(story: &str, expected: expect_test::Expect) {
    let mut board = fair();
    run(&mut board, story);
    let decided = board.log.lines().filter(|line| {
        ["admit", "hold", "evict", "pending"].iter().any(|word| line.trim_start().starts_with(word))
    });
    let shares: Vec<String> = board
        .engine
        .changed_cluster_queues()
        .into_iter()
        .map(|status| format!("{}: {}", status.name, status.share.unwrap_or(-1)))
        .collect();
    let text = decided.map(|line| format!("{}\n", line.trim())).collect::<String>();
    expected.assert_eq(&format!("{text}shares {}\n", shares.join(", ")));
}

#[test]
fn who_has_the_larger_share_gives() {
    check(
        "
        node a gpu=6
        queue pool gpu=6 cohort=c
        queue left gpu=0 cohort=c reclaim=any
        queue right gpu=0 cohort=c reclaim=any
        gang l1 queue=left pods=2 gpu=1
        gang l2 queue=left pods=2 gpu=1
        gang l3 queue=left pods=2 gpu=1
        gang r1 queue=right pods=2 gpu=1
        gang r2 queue=right pods=2 gpu=1
        ",
        expect![[r#"
            admit l1; mainx2 [default] a*2
            admit l2; mainx2 [default] a*2
            admit l3; mainx2 [default] a*2
            hold r1; mainx2 [default] a*2; until these leave: l1 (FairSharing)
            pending r1: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed. Pending the preemption of 1 workload(s)
            evict l1 for r1: FairSharing, /c/left for /c/right
            admit r1; mainx2 [default] a*2
            pending l1: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed
            pending r2: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed
            shares left: 667, pool: 0, right: 334
        "#]],
    );
}

#[test]
fn the_heads_of_a_cohort_take_turns() {
    check(
        "
        node a gpu=4
        queue pool gpu=0 cohort=c
        queue left gpu=0 cohort=c
        queue right gpu=0 cohort=c
        gang l1 queue=left pods=1 gpu=1
        gang l2 queue=left pods=1 gpu=1
        gang l3 queue=left pods=1 gpu=1
        gang r1 queue=right pods=1 gpu=1
        gang r2 queue=right pods=1 gpu=1
        queue pool gpu=3 cohort=c
        ",
        expect![[r#"
            pending l1: couldn't assign flavors to pod set main: insufficient quota for example.com/gpu in flavor default, previously considered podsets requests (0) + current podset request (1) > maximum capacity (0)
            pending l2: couldn't assign flavors to pod set main: insufficient quota for example.com/gpu in flavor default, previously considered podsets requests (0) + current podset request (1) > maximum capacity (0)
            pending l3: couldn't assign flavors to pod set main: insufficient quota for example.com/gpu in flavor default, previously considered podsets requests (0) + current podset request (1) > maximum capacity (0)
            pending r1: couldn't assign flavors to pod set main: insufficient quota for example.com/gpu in flavor default, previously considered podsets requests (0) + current podset request (1) > maximum capacity (0)
            pending r2: couldn't assign flavors to pod set main: insufficient quota for example.com/gpu in flavor default, previously considered podsets requests (0) + current podset request (1) > maximum capacity (0)
            admit l1; mainx1 [default] a*1
            admit r1; mainx1 [default] a*1
            admit l2; mainx1 [default] a*1
            pending l3: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            pending r2: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            shares left: 667, pool: 0, right: 334
        "#]],
    );
}

/// A pool that belongs to nobody, and queues with quota of their own that want so many gangs of one GPU.
fn crowd(pool: u8, own: &[u8], wants: &[u8], order: &[u8]) -> Board {
    let mut board = fair();
    command(&mut board, "node a gpu=200 pods=500");
    command(&mut board, &format!("queue pool gpu={pool} cohort=c"));
    for (at, own) in own.iter().enumerate() {
        command(&mut board, &format!("queue q{at} gpu={own} cohort=c reclaim=any within=lower"));
    }
    let mut left = wants.to_vec();
    let mut serial = 0;
    // In some order, a few at a time, so that some have the pool before others come.
    for turn in order.iter().chain(&[0, 1, 2, 3, 0, 1, 2, 3]) {
        let at = *turn as usize % wants.len();
        for _ in 0..3 {
            if left[at] > 0 {
                left[at] -= 1;
                command(&mut board, &format!("gang g{serial} queue=q{at} pods=1 gpu=1"));
                serial += 1;
            }
        }
        board.settle();
    }
    for (at, left) in left.into_iter().enumerate() {
        for _ in 0..left {
            command(&mut board, &format!("gang g{serial} queue=q{at} pods=1 gpu=1"));
            serial += 1;
        }
    }
    board.settle();
    board
}

fn used(board: &Board, queue: usize) -> i128 {
    let what = FlavorResource { flavor: "default".into(), resource: "example.com/gpu".into() };
    let name: Name = format!("q{queue}").into();
    board.engine.quotas.kueue.used(&name, &what)
}

fn sizes() -> impl Strategy<Value = (u8, Vec<u8>, Vec<u8>, Vec<u8>)> {
    let queues = 2..5usize;
    queues.prop_flat_map(|count| {
        let own = prop::collection::vec(0..4u8, count);
        let wants = prop::collection::vec(0..10u8, count);
        (0..8u8, own, wants, prop::collection::vec(any::<u8>(), 0..6))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// Sharing incentive: nobody has less than what is his own, as long as he wants it, however much others
    /// borrowed before he came.
    #[test]
    fn everybody_gets_what_is_his_own((pool, own, wants, order) in sizes()) {
        let board = crowd(pool, &own, &wants, &order);
        for (at, (own, wants)) in own.iter().zip(&wants).enumerate() {
            prop_assert!(used(&board, at) >= i128::from(*own.min(wants)), "{}", board.log);
        }
    }

    /// No starvation: of what is nobody's own, queues of equal weight that still wait differ by one gang at most,
    /// and nothing is left over while somebody waits.
    #[test]
    fn equal_weights_get_equal_shares(pool in 0..9u8, wants in prop::collection::vec(1..10u8, 2..5), order in prop::collection::vec(any::<u8>(), 0..6)) {
        let board = crowd(pool, &vec![0; wants.len()], &wants, &order);
        let got: Vec<i128> = (0..wants.len()).map(|at| used(&board, at)).collect();
        let most = got.iter().max().copied().unwrap_or(0);
        for (at, wants) in wants.iter().enumerate() {
            prop_assert!(got[at] == i128::from(*wants) || got[at] + 1 >= most, "{got:?}\n{}", board.log);
        }
        let wanted: i128 = wants.iter().map(|wants| i128::from(*wants)).sum();
        prop_assert_eq!(got.iter().sum::<i128>(), wanted.min(pool.into()));
    }

    /// More quota takes nothing from anybody.
    #[test]
    fn more_quota_harms_nobody((pool, own, wants, order) in sizes()) {
        let (less, more) = (crowd(pool, &own, &wants, &order), crowd(pool + 1, &own, &wants, &order));
        for at in 0..own.len() {
            prop_assert!(used(&more, at) >= used(&less, at), "queue {at}\n{}\n{}", less.log, more.log);
        }
    }
}
