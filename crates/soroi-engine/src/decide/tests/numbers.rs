//! Numbers in the reasons of many gangs are renewed a few at a time, and in the end all of them.

use std::collections::BTreeMap;

use super::board::Board;
use super::script::run;
use crate::decision::{Decision, Settings};

/// What is told from here on: gangs in the order in which they are, and how many fit.
fn told(board: &mut Board, line: &str) -> Vec<(String, String)> {
    let before = board.decisions.len();
    run(board, line);
    let told = board.decisions[before..].iter().filter_map(|decision| match decision {
        Decision::Pending { gang, reason } => Some((gang.to_string(), reason.to_string())),
        _ => None,
    });
    let fitting = |reason: String| {
        let at = reason.find("only ").expect("too few fit") + "only ".len();
        reason[at..].split(' ').next().expect("a number").to_owned()
    };
    told.map(|(gang, reason)| (gang, fitting(reason))).collect()
}

#[test]
fn a_few_at_a_time_the_first_of_the_queue_first() {
    let mut board = Board::with(Settings::default());
    run(&mut board, "node a gpu=40\nqueue cq gpu=1000");
    for number in 0..20 {
        // The later a name, the earlier its turn; no two ask for the same.
        let line = format!("gang g{number:02} queue=cq pods={} gpu=1 at={}", 50 + number, 100 - number);
        assert_eq!(told(&mut board, &line), [(format!("g{number:02}"), "40".to_owned())]);
    }
    assert_eq!(told(&mut board, "pod hog node=a gpu=1"), []);
    assert_eq!(told(&mut board, "wait 4999ms"), []);
    let gangs = |numbers: std::ops::Range<u32>, fit: &str| -> Vec<(String, String)> {
        numbers.map(|number| (format!("g{number:02}"), fit.to_owned())).collect()
    };
    assert_eq!(told(&mut board, "wait 1ms"), gangs(12..20, "39"));
    assert_eq!(told(&mut board, "pod other node=a gpu=1"), []);
    assert_eq!(told(&mut board, "wait 250ms"), gangs(4..12, "38"));
    assert_eq!(told(&mut board, "wait 250ms"), gangs(0..4, "38"));
    // What moved meanwhile is not forgotten.
    let last: BTreeMap<String, String> = told(&mut board, "wait 5s").into_iter().collect();
    assert_eq!(last, gangs(12..20, "38").into_iter().collect());
    assert_eq!(told(&mut board, "wait 600s"), []);
    assert_eq!(board.engine.next_wakeup(), None);
}

#[test]
fn gangs_that_are_gone_meanwhile_are_passed_over() {
    let mut board = Board::with(Settings::default());
    run(&mut board, "node a gpu=40\nqueue cq gpu=1000");
    for number in 0..12 {
        run(&mut board, &format!("gang g{number:02} queue=cq pods={} gpu=1", 50 + number));
    }
    run(&mut board, "pod hog node=a gpu=1");
    assert_eq!(told(&mut board, "wait 5s").len(), 8);
    run(&mut board, "end g09\nend g10");
    let rest: Vec<String> = told(&mut board, "wait 250ms").into_iter().map(|(gang, _)| gang).collect();
    assert_eq!(rest, ["g08", "g11"]);
}

#[test]
fn what_is_urgent_goes_first_but_not_for_ever() {
    let mut board = Board::with(Settings::default());
    run(&mut board, "node a gpu=40\nqueue cq gpu=1000\ngang g queue=cq pods=50 gpu=1");
    run(&mut board, "pod one node=a gpu=1\npod two node=a gpu=1\npod three node=a gpu=1");
    let renewed = |fit: &str| vec![("g".to_owned(), fit.to_owned())];
    board.now += 5_000;
    assert_eq!(told(&mut board, "gone one"), [], "somebody may start");
    assert_eq!(told(&mut board, "wait 0s"), renewed("38"), "nobody did");
    run(&mut board, "pod one node=a gpu=1");
    board.now += 5_000;
    assert_eq!(told(&mut board, "gone one"), []);
    board.now += 5_000;
    assert_eq!(told(&mut board, "gone two"), renewed("39"), "long enough");
}
