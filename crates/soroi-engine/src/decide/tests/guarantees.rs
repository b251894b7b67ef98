//! What is guaranteed to Volcano's Queues.

use expect_test::expect;
use proptest::prelude::*;

use super::board::{Auto, Board};
use super::script::{check, run};
use crate::decision::Settings;

#[test]
fn what_is_guaranteed_to_a_volcano_queue_is_kept_for_it() {
    check(
        "
        node a gpu=4
        vqueue root
        vqueue urgent parent=root keep:gpu=2
        vqueue batch parent=root
        vqueue night parent=root
        gang b1 vqueue=batch pods=1 min=1 gpu=1
        gang n1 vqueue=night pods=2 min=2 gpu=1
        gang u1 vqueue=urgent pods=2 min=2 gpu=1
        end b1
        gone b1-0
        gang u2 vqueue=urgent pods=1 min=1 gpu=1
        node b gpu=1
        node b gpu=1 notready
        ",
        expect![[r#"
            node a gpu=4
            vqueue root
            vqueue urgent parent=root keep:gpu=2
            vqueue batch parent=root
            vqueue night parent=root
            gang b1 vqueue=batch pods=1 min=1 gpu=1
              admit b1; mainx1 a*1
              bind b1-0 to a
              settled b1
            gang n1 vqueue=night pods=2 min=2 gpu=1
              pending n1: insufficient example.com/gpu beside what is guaranteed to other Queues than night, 1 more needed
            gang u1 vqueue=urgent pods=2 min=2 gpu=1
              admit u1; mainx2 a*2
              pending n1: couldn't place pod set main: nodes allow to fit only 1 out of 2 pod(s); for one more, 0/1 nodes are available: 1 Insufficient example.com/gpu
              bind u1-0 to a
              bind u1-1 to a
              settled u1
            end b1
            gone b1-0
              admit n1; mainx2 a*2
              bind n1-0 to a
              bind n1-1 to a
              settled n1
            gang u2 vqueue=urgent pods=1 min=1 gpu=1
              pending u2: couldn't place pod set main: nodes don't allow to fit any of 1 pod(s): 0/1 nodes are available: 1 Insufficient example.com/gpu
            node b gpu=1
              admit u2; mainx1 b*1
              bind u2-0 to b
              settled u2
            node b gpu=1 notready
        "#]],
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// Queues, nodes and gangs come, change and go; who is woken and what is told is what deciding anew would
    /// say (the board asks after each step).
    #[test]
    fn nobody_sleeps_through_a_change(steps in prop::collection::vec((0..5u8, 0..4u8, 0..4u8, 0..4u8), 1..40)) {
        let mut board = Board::with(Settings::default());
        board.auto = Auto::ALL;
        run(&mut board, "vqueue root\nnode n0 gpu=3");
        let mut last = 0;
        for (what, which, count, other) in steps {
            match what {
                0 => {
                    // A queue hangs below one of a lower number, or below one that is not there.
                    let parent = if other >= which { "root".to_owned() } else { format!("q{other}") };
                    run(&mut board, &format!("vqueue q{which} parent={parent} keep:gpu={count}"));
                }
                1 => {
                    let flag = if other == 3 { "notready" } else { "" };
                    run(&mut board, &format!("node n{which} gpu={count} {flag}"));
                }
                2 | 3 => {
                    last += 1;
                    let pods = count.max(1);
                    run(&mut board, &format!("gang g{last} vqueue=q{which} pods={pods} min={pods} gpu=1"));
                }
                _ => {
                    let gangs: Vec<_> = board.gangs.keys().cloned().collect();
                    let Some(gang) = gangs.get(usize::from(which * 4 + other) % gangs.len().max(1)) else { continue };
                    run(&mut board, &format!("end {gang}"));
                    let mine = format!("{gang}-");
                    let pods: Vec<_> = board.pods.keys().filter(|pod| pod.starts_with(&mine)).cloned().collect();
                    for pod in pods {
                        run(&mut board, &format!("gone {pod}"));
                    }
                }
            }
        }
    }
}
