//! Accounts as pictures: what each flavor and node says, and what would help.

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use crate::account::{Account, PlacesAccount, Standing, Step};
use crate::decide::tests::board::Board;
use crate::decide::tests::script::run;
use crate::event::Name;

/// Plays a story and draws the account of a gang.
#[track_caller]
fn check(story: &str, gang: &str, expected: Expect) {
    let mut board = Board::new();
    run(&mut board, story);
    let id = board.gangs[gang].id.clone();
    let before = format!("{:?}", board.engine.reason(&id));
    let account = board.engine.explain(&id, board.now).expect("it is known");
    assert_eq!(before, format!("{:?}", board.engine.reason(&id)), "looking changes nothing");
    expected.assert_eq(&draw(&account));
}

fn draw(account: &Account) -> String {
    let mut text = String::new();
    let _ = match &account.standing {
        Standing::Waits { reason, before, until } => {
            let reason = reason.as_ref().map(|reason| reason.to_string());
            let until = until.map_or(String::new(), |until| format!(", until {until}"));
            writeln!(text, "waits, {before:?} before{until}: {}", reason.unwrap_or_default())
        }
        Standing::Admitted { pods, bound } => writeln!(text, "admitted, {bound} of {pods} bound"),
    };
    for set in &account.pod_sets {
        let _ = writeln!(text, "{} × {}", set.name, set.count);
        for flavor in &set.flavors {
            let _ = writeln!(text, "  flavor {}", flavor.flavor);
            if let Some(problem) = &flavor.problem {
                let _ = writeln!(text, "    {problem}");
            }
            for quota in &flavor.quota {
                let _ = writeln!(
                    text,
                    "    {}: asks {}, owns {}, uses {} ({} borrowed), free {}, short {}",
                    quota.resource,
                    quota.asked,
                    quota.nominal,
                    quota.used,
                    quota.borrowed,
                    quota.free,
                    quota.short
                );
            }
            flavor.places.iter().for_each(|places| draw_places(&mut text, places));
        }
        set.places.iter().for_each(|places| draw_places(&mut text, places));
    }
    for remedy in &account.remedies {
        let enough = if remedy.enough { "enough" } else { "not enough" };
        let _ = writeln!(text, "{}: {enough}", words(&remedy.step));
    }
    text
}

fn draw_places(text: &mut String, places: &PlacesAccount) {
    let fits = places.problem.as_ref().map(|problem| format!("{} of {} fit", problem.fitting, problem.asked));
    let _ = writeln!(text, "    {}", fits.unwrap_or_else(|| "room alone".into()));
    let takes: Vec<String> = places.takes.iter().map(|(node, pods)| format!("{node}:{pods}")).collect();
    let _ = writeln!(text, "    takes {}", takes.join(" "));
    for (problem, nodes) in &places.nodes {
        let _ = writeln!(text, "    {problem}: {}", nodes.join(" "));
    }
    for short in &places.short {
        let lacks =
            short.short.iter().map(|(name, (missing, free))| format!("{missing} {name} ({free} free)"));
        let _ = writeln!(text, "    {} lacks {}", short.node, lacks.collect::<Vec<_>>().join(", "));
    }
    if !places.domains.is_empty() {
        let domains: Vec<String> =
            places.domains.iter().map(|(name, pods)| format!("{name}:{pods}")).collect();
        let _ = writeln!(text, "    domains {}", domains.join(" "));
    }
}

fn words(step: &Step) -> String {
    let list = |nodes: &[Name]| nodes.join(" ");
    match step {
        Step::Quota { queue, flavor, resource, more } => {
            format!("{more} more {resource} of {flavor} in {queue}")
        }
        Step::Uncordon(node) => format!("uncordon {node}"),
        Step::Ready(node) => format!("{node} ready"),
        Step::Tolerate { key, value, nodes } => format!("tolerate {key}={value} of {}", list(nodes)),
        Step::Label { label, value, nodes } => format!("label {label}={value} on {}", list(nodes)),
        Step::PodLeaves { namespace, name, node } => format!("{namespace}/{name} leaves {node}"),
        Step::GangEnds { namespace, name } => format!("{namespace}/{name} ends"),
        Step::All => "all of that".into(),
    }
}

/// The article's cluster: the hog, a cordon and a taint, each of which would do.
#[test]
fn the_fourth_gpu_is_found_in_four_ways() {
    check(
        "
        node w1 gpu=2
        node w2 gpu=2
        node w3 gpu=2 cordoned
        node w4 gpu=2 !infra=yes
        node w5 gpu=0 cordoned
        pod hog node=w1 gpu=1
        queue main gpu=4
        gang train pods=4 gpu=1 queue=main
        ",
        "train",
        expect![[r#"
            waits, Some(0) before: couldn't assign flavors to pod set main: nodes of flavor default allow to fit only 3 out of 4 pod(s); for one more, 0/5 nodes are available: 1 node(s) were unschedulable, 1 node(s) had untolerated taint {infra: yes}, 3 Insufficient example.com/gpu
            main × 4
              flavor default
                example.com/gpu: asks 4, owns 4, uses 0 (0 borrowed), free 4, short 0
                3 of 4 fit
                takes w2:2 w1:1
                node(s) were unschedulable: w3
                node(s) had untolerated taint {infra: yes}: w4
                Insufficient example.com/gpu: w1 w2 w5
                w1 lacks 1 example.com/gpu (1 free)
                w2 lacks 1 example.com/gpu (2 free)
            uncordon w3: enough
            tolerate infra=yes of w4: enough
            ns/hog leaves w1: enough
        "#]],
    );
}

/// Quota and places are both short: neither helps alone, both together do.
#[test]
fn two_things_are_missing() {
    check(
        "
        node w1 gpu=4
        node w2 gpu=4 notready
        queue main gpu=2
        gang big pods=6 gpu=1 queue=main
        ",
        "big",
        expect![[r#"
            waits, Some(0) before: couldn't assign flavors to pod set main: insufficient quota for example.com/gpu in flavor default, previously considered podsets requests (0) + current podset request (6) > maximum capacity (2)
            main × 6
              flavor default
                example.com/gpu: asks 6, owns 2, uses 0 (0 borrowed), free 2, short 4
                4 of 6 fit
                takes w1:4
                node(s) were not ready: w2
                Insufficient example.com/gpu: w1
                w1 lacks 1 example.com/gpu (4 free)
            4 more example.com/gpu of default in main: not enough
            w2 ready: not enough
            all of that: enough
        "#]],
    );
}

/// Quota that others hold, and who they are.
#[test]
fn quota_comes_back_when_another_gang_ends() {
    check(
        "
        node w1 gpu=8
        queue main gpu=4
        gang first pods=3 gpu=1 queue=main
        gang second pods=2 gpu=1 queue=main
        ",
        "second",
        expect![[r#"
            waits, Some(0) before: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            main × 2
              flavor default
                example.com/gpu: asks 2, owns 4, uses 3 (0 borrowed), free 1, short 1
                room alone
                takes w1:5
                Insufficient example.com/gpu: w1
                w1 lacks 1 example.com/gpu (5 free)
            1 more example.com/gpu of default in main: enough
            ns/first ends: enough
        "#]],
    );
}

/// The domain that comes closest, and what its nodes lack.
#[test]
fn one_rack_is_required() {
    check(
        "
        topology racks block rack kubernetes.io/hostname
        node a1 gpu=2 @block=b1 @rack=r1 @kubernetes.io/hostname=a1
        node a2 gpu=2 @block=b1 @rack=r1 @kubernetes.io/hostname=a2
        node c1 gpu=2 @block=b2 @rack=r1 @kubernetes.io/hostname=c1
        node out gpu=2
        pod hog node=a2 gpu=1
        flavor default topology=racks
        queue main gpu=9
        gang train pods=4 gpu=1 queue=main required=rack
        ",
        "train",
        expect![[r#"
            waits, Some(0) before: couldn't assign flavors to pod set main: topology "racks" allows to fit only 3 out of 4 pod(s). Total nodes: 4; excluded: topologyDomain: 1, label "block": 1; for one more, 0/4 nodes are available: 1 node(s) were outside of the topology domain, 1 node(s) had no label block, 2 Insufficient example.com/gpu; the closest domain is r1
            main × 4
              flavor default
                example.com/gpu: asks 4, owns 9, uses 0 (0 borrowed), free 9, short 0
                3 of 4 fit
                takes a1:2 a2:1
                node(s) had no label block: out
                node(s) were in other domains: c1
                Insufficient example.com/gpu: a1 a2
                a1 lacks 1 example.com/gpu (2 free)
                a2 lacks 1 example.com/gpu (1 free)
                domains b1/r1:3 b2/r1:2
            ns/hog leaves a2: enough
        "#]],
    );
}

#[test]
fn others_are_told_where_they_stand() {
    check(
        "node w1 gpu=2\nflavor default\nqueue main gpu=4\ngang train pods=2 gpu=1 queue=main",
        "train",
        expect![[r#"
            admitted, 2 of 2 bound
        "#]],
    );
    check(
        "node w1 gpu=2\nflavor default\nqueue main gpu=4\ngang train pods=2 gpu=1 queue=main\noff train",
        "train",
        expect![[r#"
            waits, None before: The workload is deactivated
        "#]],
    );
}

/// Labels that nobody has are named, and what they would do is tried out.
#[test]
fn labels_that_no_node_has() {
    check(
        "
        node w1 gpu=2 @disk=hdd
        node w2 gpu=2
        flavor default
        queue main gpu=4
        gang train pods=4 gpu=1 queue=main @disk=ssd
        ",
        "train",
        expect![[r#"
            waits, Some(0) before: couldn't assign flavors to pod set main: nodes of flavor default don't allow to fit any of 4 pod(s): 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector; no node has label disk=ssd
            main × 4
              flavor default
                example.com/gpu: asks 4, owns 4, uses 0 (0 borrowed), free 4, short 0
                0 of 4 fit
                takes 
                node(s) didn't match Pod's node affinity/selector: w1 w2
            label disk=ssd on w1 w2: enough
        "#]],
    );
    check(
        "
        topology racks block rack kubernetes.io/hostname
        node a1 gpu=2 @block=b1 @kubernetes.io/hostname=a1
        node a2 gpu=2 @block=b1 @kubernetes.io/hostname=a2
        flavor default topology=racks
        queue main gpu=4
        gang train pods=4 gpu=1 queue=main required=rack
        ",
        "train",
        expect![[r#"
            waits, Some(0) before: couldn't assign flavors to pod set main: topology "racks" doesn't allow to fit any of 4 pod(s). Total nodes: 2; excluded: label "rack": 2; 0/2 nodes are available: 2 node(s) had no label rack; no node has label rack
            main × 4
              flavor default
                example.com/gpu: asks 4, owns 4, uses 0 (0 borrowed), free 4, short 0
                0 of 4 fit
                takes 
                node(s) had no label rack: a1 a2
        "#]],
    );
}

/// A block takes what no rack does.
#[test]
fn a_coarser_level_would_do() {
    check(
        "
        topology racks block rack kubernetes.io/hostname
        node a1 gpu=2 @block=b1 @rack=r1 @kubernetes.io/hostname=a1
        node a2 gpu=2 @block=b1 @rack=r2 @kubernetes.io/hostname=a2
        node c1 gpu=1 @block=b2 @rack=r3 @kubernetes.io/hostname=c1
        flavor default topology=racks
        queue main gpu=9
        gang train pods=4 gpu=1 queue=main required=rack
        ",
        "train",
        expect![[r#"
            waits, Some(0) before: couldn't assign flavors to pod set main: topology "racks" allows to fit only 2 out of 4 pod(s). Total nodes: 3; excluded: topologyDomain: 2; for one more, 0/3 nodes are available: 2 node(s) were outside of the topology domain, 1 Insufficient example.com/gpu; the closest domain is r1; one domain of block takes 4 (b1); even on empty nodes only 2 would ever fit
            main × 4
              flavor default
                example.com/gpu: asks 4, owns 9, uses 0 (0 borrowed), free 9, short 0
                2 of 4 fit
                takes a1:2
                node(s) were in other domains: a2 c1
                Insufficient example.com/gpu: a1
                a1 lacks 1 example.com/gpu (2 free)
                domains b1/r2:2 b1/r1:2 b2/r3:1
        "#]],
    );
}
