//! Random lives of random clusters: the invariants hold after every step, nothing is leaked, and
//! the same steps give the same decisions.

use proptest::prelude::*;

use super::board::{Auto, Board};
use super::script::command;
use crate::decision::{Decision, Settings};
use crate::event::*;
use crate::reason::Off;

/// One thing that happens. Small numbers choose among what is there at that time.
#[derive(Clone, Debug)]
enum Step {
    Gang { queue: u8, pods: u8, gpu: u8, prio: u8, min: u8, required: bool },
    Mixed { queue: u8, workers: u8 },
    Group { queue: u8, ps: u8, workers: u8, large: u8, min: u8, of_workers: u8 },
    Follow(u8),
    End(u8),
    Off(u8),
    Ready(u8),
    PodsReady { gang: u8, shown: bool, due: Option<u16> },
    Count(u8, u8),
    Members(u8, u8),
    Inject(u8),
    Hog { node: u8, gpu: u8 },
    Pod(u8, PodStep),
    Node { node: u8, gpu: u8, rack: u8, flag: u8 },
    NodeGone(u8),
    Queue { queue: u8, gpu: u8, red: u8, cohort: u8, kind: u8, policy: u8, preempts: u8 },
    Answer { which: u8, how: u8 },
    Auto(u8),
    Wait(u16),
    Restart,
    PlanLost(u8),
}

#[derive(Clone, Copy, Debug)]
enum PodStep {
    Gone,
    Done,
    Fail,
    Terminate,
    Gate,
    Ungate,
}

fn step() -> impl Strategy<Value = Step> {
    let pod_step = prop_oneof![
        3 => Just(PodStep::Gone),
        1 => Just(PodStep::Done),
        1 => Just(PodStep::Fail),
        1 => Just(PodStep::Terminate),
        1 => Just(PodStep::Gate),
        1 => Just(PodStep::Ungate),
    ];
    prop_oneof![
        6 => (0..4u8, 1..5u8, 0..3u8, 0..2u8, 0..5u8, any::<bool>())
            .prop_map(|(queue, pods, gpu, prio, min, required)| Step::Gang { queue, pods, gpu, prio, min, required }),
        1 => (0..4u8, 1..4u8).prop_map(|(queue, workers)| Step::Mixed { queue, workers }),
        2 => (0..4u8, 0..3u8, 0..4u8, 0..3u8, 1..6u8, 0..3u8).prop_map(|(queue, ps, workers, large, min, of_workers)| {
            Step::Group { queue, ps, workers, large, min, of_workers }
        }),
        3 => any::<u8>().prop_map(Step::Follow),
        2 => any::<u8>().prop_map(Step::End),
        1 => any::<u8>().prop_map(Step::Off),
        1 => any::<u8>().prop_map(Step::Ready),
        2 => (any::<u8>(), any::<bool>(), prop::option::weighted(0.2, 0..20_000u16))
            .prop_map(|(gang, shown, due)| Step::PodsReady { gang, shown, due }),
        1 => (any::<u8>(), 0..5u8).prop_map(|(gang, count)| Step::Count(gang, count)),
        3 => (any::<u8>(), 1..4u8).prop_map(|(gang, most)| Step::Members(gang, most)),
        1 => any::<u8>().prop_map(Step::Inject),
        2 => (0..4u8, 1..3u8).prop_map(|(node, gpu)| Step::Hog { node, gpu }),
        4 => (any::<u8>(), pod_step).prop_map(|(pod, step)| Step::Pod(pod, step)),
        3 => (0..4u8, 0..5u8, 0..3u8, 0..4u8)
            .prop_map(|(node, gpu, rack, flag)| Step::Node { node, gpu, rack, flag }),
        1 => (0..4u8).prop_map(Step::NodeGone),
        3 => (0..3u8, 0..6u8, 0..4u8, 0..3u8, 0..6u8, 0..6u8, 0..8u8).prop_map(|(queue, gpu, red, cohort, kind, policy, preempts)| {
            Step::Queue { queue, gpu, red, cohort, kind, policy, preempts }
        }),
        6 => (any::<u8>(), 0..6u8).prop_map(|(which, how)| Step::Answer { which, how }),
        1 => (0..8u8).prop_map(Step::Auto),
        2 => (0..40_000u16).prop_map(Step::Wait),
        1 => Just(Step::Restart),
        1 => any::<u8>().prop_map(Step::PlanLost),
    ]
}

/// What a queue's gangs may preempt.
const PREEMPTS: [&str; 8] = [
    "",
    "",
    "within=lower",
    "within=newer",
    "reclaim=any",
    "within=lower reclaim=lower",
    "within=lower reclaim=any whileborrowing=0",
    "within=newer reclaim=lower whileborrowing=5",
];

fn start(settings: Settings) -> Board {
    let mut board = Board::with(settings);
    for line in [
        "topology racks rack kubernetes.io/hostname",
        "flavor default topology=racks",
        "flavor red @rack=r1",
        "node n0 gpu=4 cpu=4000 @rack=r0 @kubernetes.io/hostname=n0",
        "node n1 gpu=4 cpu=4000 @rack=r1 @kubernetes.io/hostname=n1",
        "queue q0 gpu=4 cpu=8000 cohort=c within=lower",
        "queue q1 gpu=4 cpu=8000 cohort=c within=newer reclaim=any",
        "queue q2 gpu=4 cpu=8000",
    ] {
        command(&mut board, line);
    }
    board
}

fn pick<T: Clone>(from: impl Iterator<Item = T>, number: u8) -> Option<T> {
    let all: Vec<T> = from.collect();
    (!all.is_empty()).then(|| all[number as usize % all.len()].clone())
}

fn gang_name(board: &Board, number: u8) -> Option<Name> {
    pick(board.gangs.keys().cloned(), number)
}

fn take(board: &mut Board, step: &Step, serial: usize) {
    match step {
        Step::Gang { queue, pods, gpu, prio, min, required } => {
            let door = if *queue < 3 { format!("queue=q{queue}") } else { String::new() };
            let level = if *required && *queue < 3 { "required=rack" } else { "" };
            let min = if *min > 0 && *min <= *pods { format!("min={min}") } else { String::new() };
            command(board, &format!("gang g{serial} {door} pods={pods} gpu={gpu} prio={prio} {min} {level}"));
        }
        Step::Mixed { queue, workers } => {
            let door = if *queue < 3 { format!("queue=q{queue}") } else { String::new() };
            command(board, &format!("gang g{serial} {door} lead:1:cpu=2500 workers:{workers}:gpu=1"));
        }
        Step::Group { queue, ps, workers, large, min, of_workers } => {
            let door = if *queue < 3 { format!("queue=q{queue}") } else { String::new() };
            let pods = format!("ps:{ps}:cpu=2500 worker:{workers}:gpu=1 worker-large:{large}:gpu=2");
            let least = (*min).max(of_workers + 1);
            let minima = format!("min={least} role:ps=1 role:worker={of_workers}");
            command(board, &format!("gang g{serial} {door} {pods} {minima}"));
        }
        Step::Follow(n) => {
            if let Some(name) = pick(board.groups.keys().cloned(), *n) {
                board.follow(&name);
            }
        }
        Step::End(n) => _ = gang_name(board, *n).map(|name| board.end(&name)),
        Step::Off(n) => {
            if let Some(name) = gang_name(board, *n) {
                board.change_gang(&name, |gang| gang.readiness = Readiness::Off(Off::Deactivated));
            }
        }
        Step::Ready(n) => {
            if let Some(name) = gang_name(board, *n) {
                board.change_gang(&name, |gang| gang.readiness = Readiness::Ready);
            }
        }
        Step::PodsReady { gang, shown, due } => {
            if let Some(name) = gang_name(board, *gang) {
                let due = due.filter(|_| !shown).map(|span| board.now + Millis::from(span));
                board.change_gang(&name, |gang| gang.pods_ready = PodsReady { shown: *shown, due });
            }
        }
        Step::Count(n, count) => {
            if let Some(name) = gang_name(board, *n) {
                board.change_gang(&name, |gang| gang.pod_sets[0].count = u32::from(*count));
            }
        }
        Step::Members(n, most) => {
            if let Some(name) = gang_name(board, *n) {
                board.create_members(&name, u32::from(*most));
            }
        }
        Step::Inject(n) => {
            if let Some(name) = gang_name(board, *n) {
                command(board, &format!("inject {name} cpu=700"));
            }
        }
        Step::Hog { node, gpu } => command(board, &format!("pod hog{serial} node=n{node} gpu={gpu}")),
        Step::Pod(n, step) => {
            if let Some(name) = pick(board.pods.keys().cloned(), *n) {
                pod_step(board, &name, *step);
            }
        }
        Step::Node { node, gpu, rack, flag } => {
            let rack = if *rack < 2 { format!("@rack=r{rack}") } else { String::new() };
            let flag = ["", "", "cordoned", "notready"][*flag as usize];
            let line =
                format!("node n{node} gpu={gpu} cpu=4000 {rack} @kubernetes.io/hostname=n{node} {flag}");
            command(board, &line);
        }
        Step::NodeGone(n) => command(board, &format!("nodegone n{n}")),
        Step::Queue { queue, gpu, red, cohort, kind, policy, preempts } => {
            let cohort = if *cohort > 0 { "cohort=c" } else { "" };
            let kind = ["", "", "strict", "hold", "drain", "trynext"][*kind as usize];
            let policy = ["", "", "", "policy=after", "policy=topology", "policy=quota"][*policy as usize];
            let red = if *red > 0 { format!("gpu@red={red} cpu@red=9000") } else { String::new() };
            let preempts = PREEMPTS[*preempts as usize];
            command(
                board,
                &format!("queue q{queue} gpu={gpu} cpu=8000 {red} {cohort} {kind} {policy} {preempts}"),
            );
        }
        Step::Answer { which, how } => answer(board, *which, *how),
        Step::Auto(bits) => {
            board.auto = Auto { commit: bits & 1 > 0, members: bits & 2 > 0, bind: bits & 4 > 0 };
        }
        Step::Wait(span) => board.wait(Millis::from(*span)),
        Step::Restart => {
            board.restart();
            board.open.clear();
        }
        Step::PlanLost(n) => {
            if let Some(id) = pick(board.plans.keys().cloned(), *n)
                && board.gangs.values().any(|gang| gang.id == id)
            {
                board.plans.remove(&id);
                board.engine.apply(Event::PlanGone(id), board.now);
            }
        }
    }
    board.settle();
}

fn pod_step(board: &mut Board, name: &Name, step: PodStep) {
    let ended = board.pods[name].is_terminal();
    match step {
        PodStep::Gone => board.remove_pod(name),
        // A pod that never ran cannot end; one that ended never runs again.
        PodStep::Done if !ended && board.pods[name].node.is_some() => {
            board.change_pod(name, |pod| pod.phase = PodPhase::Succeeded);
        }
        PodStep::Fail if !ended && board.pods[name].node.is_some() => {
            board.change_pod(name, |pod| pod.phase = PodPhase::Failed);
        }
        PodStep::Terminate => board.change_pod(name, |pod| pod.terminating = true),
        PodStep::Gate if board.pods[name].node.is_none() => {
            board.change_pod(name, |pod| pod.bindable = false)
        }
        PodStep::Ungate => board.change_pod(name, |pod| pod.bindable = true),
        _ => {}
    }
}

/// Somebody answers an open decision, in one of the ways in which that can happen.
fn answer(board: &mut Board, which: u8, how: u8) {
    if board.open.is_empty() {
        return;
    }
    let decision = board.open.remove(which as usize % board.open.len());
    match (decision, how) {
        (Decision::Admit(admission) | Decision::Place(admission), 0) => {
            board.engine.confirm(Outcome::NotCommitted(admission.gang), board.now);
        }
        (Decision::Admit(admission) | Decision::Place(admission), _) => board.commit(&admission),
        (Decision::Bind { pod, .. }, 0) => {
            board.engine.confirm(Outcome::NotBound { pod, lost: false }, board.now)
        }
        (Decision::Bind { pod, .. }, 1) => {
            if board.pods.get(&*pod).is_some_and(|pod| pod.node.is_none()) {
                board.remove_pod(&pod);
            }
            board.engine.confirm(Outcome::NotBound { pod, lost: true }, board.now);
        }
        (Decision::Bind { pod, node, .. }, how) => board.bind(&pod, &node, how == 2),
        (Decision::Hold { admission, .. }, 0) => {
            board.engine.confirm(Outcome::NotCommitted(admission.gang), board.now);
        }
        (Decision::Hold { admission, victims }, _) => board.write_hold(&admission, &victims),
        (Decision::Undo { gang, .. }, _) => board.carry_out_undo(&gang),
        _ => {}
    }
}

fn live(steps: &[Step]) -> Board {
    live_under(Settings::default(), steps)
}

fn live_under(settings: Settings, steps: &[Step]) -> Board {
    let mut board = start(settings);
    for (serial, step) in steps.iter().enumerate() {
        use std::fmt::Write as _;
        let _ = writeln!(board.log, "{step:?}");
        take(&mut board, step, serial);
    }
    board
}

/// After everything ended, nothing is held, charged or waited for.
fn end(mut board: Board) {
    board.auto = Auto::ALL;
    for decision in std::mem::take(&mut board.open) {
        board.open.push(decision);
        answer(&mut board, 0, 5);
        board.settle();
    }
    for name in board.gangs.keys().cloned().collect::<Vec<_>>() {
        board.end(&name);
        board.settle();
    }
    for name in board.pods.keys().cloned().collect::<Vec<_>>() {
        board.remove_pod(&name);
        board.settle();
    }
    assert_eq!(board.engine.cluster.occupants().count(), 0, "{}\nplaces are leaked", board.log);
    assert_eq!(board.engine.quotas.kueue.all_used().count(), 0, "{}\nquota is leaked", board.log);
    assert!(board.engine.gangs.is_empty(), "{}\ngangs are leaked: {:?}", board.log, board.engine.gangs);
    assert!(
        board.engine.waiting.is_empty() && board.engine.timers.is_empty(),
        "{}\nwaits are leaked",
        board.log
    );
}

/// A quarter of the usual number of cases, each of which is long; `PROPTEST_CASES` asks for more.
fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases / 4, failure_persistence: None, max_shrink_iters: 2000, ..usual }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn whatever_happens_the_invariants_hold(steps in prop::collection::vec(step(), 1..40)) {
        let board = live(&steps);
        end(board);
    }

    #[test]
    fn one_after_the_other_they_hold_as_well(steps in prop::collection::vec(step(), 1..40)) {
        end(live_under(Settings { block_admission: true, ..Settings::default() }, &steps));
    }

    #[test]
    fn the_same_steps_give_the_same_decisions(steps in prop::collection::vec(step(), 1..30)) {
        prop_assert_eq!(format!("{:?}", live(&steps).decisions), format!("{:?}", live(&steps).decisions));
    }

    #[test]
    fn the_order_in_which_objects_arrive_does_not_matter(
        steps in prop::collection::vec(step(), 1..30),
        order in any::<u64>(),
    ) {
        let board = live(&steps);
        let mut objects: Vec<Event> = board.facts.values().cloned().collect();
        objects.extend(board.plans.values().cloned().map(Event::Plan));
        let known: Vec<GangId> = board.gangs.values().map(|gang| gang.id.clone()).collect();
        let gone = board.plans.keys().filter(|id| !known.contains(id));
        let gone: Vec<Event> = gone.cloned().map(Event::GangGone).collect();
        let decide = |objects: &[Event]| {
            let mut engine = crate::Engine::new(board.settings.clone());
            objects.iter().chain(&gone).for_each(|event| engine.apply(event.clone(), board.now));
            let decisions = engine.decide(board.now);
            format!("{decisions:?} {:?} {:?}", engine.changed_cluster_queues(), engine.next_wakeup())
        };
        let one = decide(&objects);
        shuffle(&mut objects, order);
        prop_assert_eq!(one, decide(&objects));
    }
}

/// Fisher and Yates, with a linear congruence for dice: any order is as good.
fn shuffle<T>(items: &mut [T], mut seed: u64) {
    for at in (1..items.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        items.swap(at, (seed >> 33) as usize % (at + 1));
    }
}
