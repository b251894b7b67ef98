//! What `topology` promises, as tests.

use crate::cluster::Cluster;
use crate::event::{Name, Node};
use crate::fit::Ask;
use crate::place::board::{Board, node};
use crate::place::{PlaceRequest, PodSetRequest, fitting, place};

const THREE_LEVELS: &str = "
    topology t block rack host
    node a gpu=8 block=b1 rack=r1
    node b gpu=4 block=b1 rack=r1
    node c gpu=2 block=b1 rack=r2
    node d gpu=1 block=b2 rack=r1
    node e gpu=9 block=b2
";

fn gpu() -> PodSetRequest {
    crate::place::board::pods(&["m", "1", "gpu=1"])
}

fn room(board: &mut Board, path: &[&str]) -> u64 {
    let path: Vec<Name> = path.iter().map(|value| Name::from(*value)).collect();
    board.cluster.capacity(&gpu().ask, Some(&"t".into()), &path)
}

#[test]
fn room_adds_up_along_whole_paths() {
    let mut board = Board::new(THREE_LEVELS);
    let rooms = |board: &mut Board| -> Vec<u64> {
        let paths: [&[&str]; 6] = [&[], &["b1"], &["b1", "r1"], &["b1", "r2"], &["b2", "r1"], &["r1"]];
        paths.iter().map(|path| room(board, path)).collect()
    };
    // e lies outside: it has no rack. r1 is two domains.
    assert_eq!(rooms(&mut board), [15, 14, 12, 2, 1, 0]);
    board.line("use a gpu=3");
    board.line("use a gpu=3");
    assert_eq!(rooms(&mut board), [9, 8, 6, 2, 1, 0]);
    // A node moves to another rack.
    board.line("node b gpu=4 block=b2 rack=r1");
    assert_eq!(rooms(&mut board), [9, 4, 2, 2, 5, 0]);
    // The label appears; a node goes.
    board.line("node e gpu=9 block=b2 rack=r9");
    board.line("gone a");
    assert_eq!(rooms(&mut board), [16, 2, 0, 2, 5, 0]);
    assert_eq!(board.cluster.discrepancies(), Vec::<String>::new());
}

#[test]
fn levels_are_known_by_their_labels() {
    let board = Board::new(THREE_LEVELS);
    let has = |topology: &str, level: &str| board.cluster.has_level(&topology.into(), &level.into());
    assert!(has("t", "block") && has("t", "rack") && has("t", "kubernetes.io/hostname"));
    assert!(!has("t", "zone") && !has("u", "block"));
}

#[test]
fn places_are_shown_as_kueue_shows_them() {
    let board = Board::new(&format!("{THREE_LEVELS} topology u block rack"));
    let shown = |topology: &str, nodes: &[(&str, u32)]| {
        let nodes: Vec<(Name, u32)> = nodes.iter().map(|(node, count)| (Name::from(*node), *count)).collect();
        let places = board.cluster.topology_places(&topology.into(), &nodes)?;
        let domains = places.domains.iter().map(|d| format!("{} {}", d.values.join("/"), d.count));
        Some(format!("{}: {}", places.levels.join("/"), domains.collect::<Vec<_>>().join(", ")))
    };
    let nodes = [("d", 1), ("a", 2), ("b", 3)];
    assert_eq!(shown("t", &nodes).unwrap(), "kubernetes.io/hostname: a 2, b 3, d 1");
    assert_eq!(shown("u", &nodes).unwrap(), "block/rack: b1/r1 5, b2/r1 1");
    assert_eq!(shown("u", &[("e", 1)]), None);
    assert_eq!(shown("nothing", &nodes), None);
}

#[test]
fn odd_topologies_do_no_harm() {
    // No levels: all nodes, and no level that could be asked for. A label twice: one level in one.
    let mut board = Board::new(
        "
        topology empty
        topology twice rack rack
        node a gpu=2 rack=r1
        node b gpu=2
    ",
    );
    let mut fits = |line: &str| place(&mut board.cluster, &Board::new(line).request).is_ok();
    assert!(fits("pods m 4 gpu=1 topology=empty"));
    assert!(!fits("pods m 1 gpu=1 topology=empty required=rack"));
    assert!(fits("pods m 2 gpu=1 topology=twice required=rack"));
    assert!(!fits("pods m 3 gpu=1 topology=twice"));
    assert_eq!(board.cluster.discrepancies(), Vec::<String>::new());
}

#[test]
fn a_topology_may_change_its_levels_and_go() {
    let mut board = Board::new(THREE_LEVELS);
    let fits = |board: &mut Board, line: &str| place(&mut board.cluster, &Board::new(line).request).is_ok();
    assert!(fits(&mut board, "pods m 12 gpu=1 topology=t required=rack"));
    board.line("topology t block");
    assert!(!fits(&mut board, "pods m 12 gpu=1 topology=t required=rack"));
    assert!(fits(&mut board, "pods m 14 gpu=1 topology=t required=block"));
    board.cluster.remove_topology(&"t".into());
    assert!(!fits(&mut board, "pods m 1 gpu=1 topology=t"));
    assert!(fits(&mut board, "pods m 1 gpu=1"));
}

fn rack_node(ix: usize, rack: usize) -> Node {
    node(&[&format!("n{ix}"), "gpu=1", &format!("rack=r{rack}")])
}

/// Nodes that come and go leave empty racks behind; they are forgotten, and answers stay right.
#[test]
fn empty_domains_are_forgotten() {
    let mut cluster = Cluster::default();
    cluster.upsert_topology(&"t".into(), &["rack".into()]);
    let mut pods = gpu();
    pods.topology = Some("t".into());
    for rack in 0..3_000 {
        cluster.upsert_node(&rack_node(rack % 3, rack));
        if rack % 100 == 0 {
            fitting(&mut cluster, &pods);
        }
    }
    assert_eq!(fitting(&mut cluster, &pods), 3);
    assert!(cluster.topologies().tree(Some(&"t".into())).unwrap().domain_count() < 1_000);
    assert_eq!(cluster.discrepancies(), Vec::<String>::new());
}

/// More shapes than there are indexes, and more changes than the log keeps: the answers are those
/// of a cluster that was never asked before.
#[test]
fn forgotten_indexes_are_made_anew() {
    let mut cluster = Cluster::default();
    for ix in 0..20 {
        cluster.upsert_node(&rack_node(ix, 0));
    }
    let asks: Vec<Ask> = (0..super::INDEXES_MAX + 10)
        .map(|cpu| {
            Ask::plain(
                &crate::place::board::pods(&[
                    "m",
                    "1",
                    "gpu=1",
                    &format!("cpu={}", cpu % 2),
                    &format!("mem={cpu}"),
                ])
                .ask
                .shape,
            )
        })
        .collect();
    let request = |ask: &Ask| PlaceRequest {
        pod_sets: vec![PodSetRequest { count: 1, ask: ask.clone(), ..PodSetRequest::default() }],
        ..PlaceRequest::default()
    };
    for round in 0..3 {
        for ask in &asks {
            let fresh = place(&mut cluster.clone(), &request(ask));
            assert_eq!(place(&mut cluster, &request(ask)), fresh);
        }
        for change in 0..6_000 {
            let pod = crate::cluster::Occupant::Pod(format!("p{}", change % 7).into());
            cluster.charge(pod, &format!("n{}", (change + round) % 20).into(), &gpu().ask.shape);
        }
    }
    assert_eq!(cluster.discrepancies(), Vec::<String>::new());
}
