//! Which flavors a queue gives to which pods, row by row.

use std::sync::Arc;

use super::*;
use crate::decide::tests::board::Board;
use crate::decide::tests::script::run;
use crate::decision::Settings;

const GPU: &str = "example.com/gpu";

fn set(shape: Shape, topology: TopologyRequest) -> StartSet {
    let shape = Arc::new(shape);
    StartSet {
        name: "main".into(),
        role: None,
        count: 2,
        least: None,
        shape: shape.clone(),
        placed: shape,
        topology,
        who: None,
    }
}

fn gpus(each: i64) -> Shape {
    Shape { requests: BTreeMap::from([(GPU.into(), each)]), ..Shape::default() }
}

fn expression(key: &str, op: Operator) -> Expression {
    Expression { key: key.into(), op }
}

fn is_in(value: &str) -> Operator {
    Operator::In(vec![value.into()])
}

/// The flavors that do, with how high they borrow, then the others with what is wrong.
fn answer(story: &str, set: &StartSet, taken: i64) -> String {
    let mut board = Board::with(Settings::default());
    run(&mut board, story);
    let (world, tree) = (&board.engine.world, &board.engine.quotas.kueue);
    let queue = tree.queue(&"cq".into()).expect("the story has a queue cq");
    let asked = totals(set, set.count, Some(queue));
    let taken =
        BTreeMap::from([(FlavorResource { flavor: "one".into(), resource: GPU.into() }, taken.into())]);
    let options =
        options(Ground { world, tree, queue, lenient: false }, &queue.groups[0], set, &asked, &taken);
    let fit = options.fit.iter().map(|option| format!("{}+{}", option.flavor, option.grade.borrow));
    let refused = options.refused.iter().map(|refusal| {
        let why: Vec<String> = refusal.problems.iter().map(problem).collect();
        format!("{}: {}{}", refusal.flavor, why.join(", "), if refusal.short { " now" } else { "" })
    });
    fit.chain(refused).collect::<Vec<_>>().join("; ")
}

fn problem(problem: &FlavorProblem) -> String {
    match problem {
        FlavorProblem::Short { short, .. } => format!("short {short}"),
        FlavorProblem::ExceedsMaximum { previous, request, maximum, .. } => {
            format!("{previous}+{request} of at most {maximum}")
        }
        FlavorProblem::UntoleratedTaint { taint, .. } => format!("taint {}", taint.key),
        FlavorProblem::AffinityMismatch { .. } => "labels".to_owned(),
        FlavorProblem::NoTopologyLevel { level, .. } => format!("level {level:?}"),
        other => format!("{other:?}"),
    }
}

#[test]
fn the_order_is_what_fungibility_says() {
    let flavors = "flavor one\nflavor two\nqueue bank cohort=team gpu@one=9 gpu@two=9\n";
    let rows = [
        // Enough of its own: the order of the queue.
        ("queue cq cohort=team gpu@one=4 gpu@two=4", 0, "one+0; two+0"),
        // The first must borrow: it is taken in its turn, or after those that need not.
        ("queue cq cohort=team gpu@one=1 gpu@two=4", 0, "one+1; two+0"),
        ("queue cq cohort=team gpu@one=1 gpu@two=4 trynext", 0, "two+0; one+1"),
        // What earlier pod sets take counts.
        ("queue cq cohort=team gpu@one=4 gpu@two=4 trynext", 3, "two+0; one+1"),
        ("queue cq gpu@one=4 gpu@two=4", 3, "two+0; one: 3+2 of at most 4"),
        ("queue cq cohort=team gpu@one=1,borrow:0 gpu@two=4", 0, "two+0; one: 0+2 of at most 1"),
    ];
    for (queue, taken, expected) in rows {
        let story = format!("{flavors}{queue}");
        assert_eq!(answer(&story, &set(gpus(1), TopologyRequest::NONE), taken), expected, "{queue}");
    }
}

#[test]
fn what_others_use_is_short_only_now() {
    let story = "
        node n gpu=8
        flavor one
        queue cq gpu@one=4
        gang other queue=cq pods=3 gpu=1
    ";
    assert_eq!(answer(story, &set(gpus(1), TopologyRequest::NONE), 0), "one: short 1 now");
    assert_eq!(answer(story, &set(gpus(3), TopologyRequest::NONE), 0), "one: 0+6 of at most 4");
}

#[test]
fn a_flavor_must_suit_the_pods() {
    let story = "
        topology racks rack kubernetes.io/hostname
        flavor one @kind=red @zone=z1 topology=racks
        flavor two @kind=blue !spot=yes
        queue cq gpu@one=9 gpu@two=9
    ";
    let tolerant = |shape: Shape| Shape {
        tolerations: vec![crate::event::Toleration {
            key: Some("spot".into()),
            matches: crate::event::TolerationMatch::Exists,
            effect: None,
        }],
        ..shape
    };
    let selects = |key: &str, value: &str| Shape {
        node_selector: Labels::from([(key.into(), value.into())]),
        ..tolerant(gpus(1))
    };
    let affinity = |terms: Vec<Vec<Expression>>| {
        let terms = terms.into_iter().map(|labels| NodeSelectorTerm { labels, fields: Vec::new() });
        Shape { node_affinity: Some(terms.collect()), ..tolerant(gpus(1)) }
    };
    let rows = [
        (gpus(1), TopologyRequest::NONE, "one+0; two: taint spot"),
        (tolerant(gpus(1)), TopologyRequest::NONE, "one+0; two+0"),
        (selects("kind", "blue"), TopologyRequest::NONE, "two+0; one: labels"),
        // Only keys that some flavor has say which flavor is wanted.
        (selects("disk", "fast"), TopologyRequest::NONE, "one+0; two+0"),
        (selects("zone", "z1"), TopologyRequest::NONE, "one+0; two: labels"),
        (affinity(vec![vec![expression("kind", is_in("red"))]]), TopologyRequest::NONE, "one+0; two: labels"),
        (
            affinity(vec![vec![expression("kind", is_in("red"))], vec![expression("kind", is_in("blue"))]]),
            TopologyRequest::NONE,
            "one+0; two+0",
        ),
        // A term that speaks of other keys only matches every flavor.
        (
            affinity(vec![
                vec![expression("kind", is_in("green"))],
                vec![expression("disk", Operator::Exists)],
            ]),
            TopologyRequest::NONE,
            "one+0; two+0",
        ),
        (affinity(Vec::new()), TopologyRequest::NONE, "one: labels; two: labels"),
        (tolerant(gpus(1)), TopologyRequest::unconstrained(), "one+0; two: level None"),
        (tolerant(gpus(1)), TopologyRequest::required("rack".into()), "one+0; two: level Some(\"rack\")"),
        (
            tolerant(gpus(1)),
            TopologyRequest::preferred("block".into()),
            "one: level Some(\"block\"); two: level Some(\"block\")",
        ),
    ];
    for (at, (shape, topology, expected)) in rows.into_iter().enumerate() {
        assert_eq!(answer(story, &set(shape, topology), 0), expected, "row {at}");
    }
}

#[test]
fn what_is_asked_and_not_covered() {
    let rows = [
        ("queue cq gpu=4", vec![(GPU, 1)], "example.com/gpu=2", ""),
        ("queue cq gpu=4", vec![(GPU, 1), ("cpu", 500), ("memory", 0)], "cpu=1000 example.com/gpu=2", "cpu"),
        ("queue cq gpu=4 pods=9", vec![(GPU, 1)], "example.com/gpu=2 pods=2", ""),
        ("queue cq pods=9", vec![("cpu", 1)], "cpu=2 pods=2", "cpu"),
        // Absurd amounts do not overflow.
        ("queue cq gpu=4", vec![(GPU, i64::MAX)], "example.com/gpu=18446744073709551614", ""),
    ];
    for (queue, requests, expected, not_covered) in rows {
        let mut board = Board::with(Settings::default());
        run(&mut board, queue);
        let queue = board.engine.quotas.kueue.queue(&"cq".into()).expect("just told");
        let requests = requests.into_iter().map(|(name, amount)| (name.into(), amount)).collect();
        let asked =
            totals(&set(Shape { requests, ..Shape::default() }, TopologyRequest::NONE), 2, Some(queue));
        let shown: Vec<String> = asked.iter().map(|(name, sum)| format!("{name}={sum}")).collect();
        assert_eq!(shown.join(" "), expected);
        let (world, tree) = (&board.engine.world, &board.engine.quotas.kueue);
        let ground = |lenient| Ground { world, tree, queue, lenient };
        assert!(uncovered(ground(true), &asked).is_empty());
        let missing: Vec<String> =
            uncovered(ground(false), &asked).iter().map(|problem| format!("{problem:?}")).collect();
        let expected: Vec<String> = Some(not_covered)
            .filter(|name| !name.is_empty())
            .map(|name| format!("{:?}", FlavorProblem::ResourceNotCovered { resource: name.into() }))
            .into_iter()
            .collect();
        assert_eq!(missing, expected);
    }
}
