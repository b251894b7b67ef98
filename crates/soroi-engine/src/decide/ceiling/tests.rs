//! What would fit if nothing else were there, row by row; and that it is what fits on the same
//! nodes when indeed nothing is there.

use super::*;
use crate::place::board::Board;
use crate::place::fitting;

const CLUSTER: &str = "
    topology t rack host
    node a gpu=4 rack=r1 host=a
    node b gpu=4 rack=r1 host=b
    node c gpu=6 rack=r2 host=c kind=red
    node d gpu=8 rack=r3 host=d cordoned
    node e gpu=8 rack=r3 host=e taint=k=v:NoSchedule
    node f gpu=8 host=f
    node g gpu=8 rack=r4 host=g notready
    use a gpu=4
    use b gpu=3
    use c gpu=6
";

fn most_of(cluster: &str, asks: &str) -> u32 {
    let mut board = Board::new(cluster);
    board.line(&format!("pods m 9 {asks}"));
    Ceilings::default().of(&mut board.cluster, &board.request.pod_sets[0]).expect("no volumes")
}

#[test]
fn as_if_nothing_else_were_there() {
    let rows = [
        // Anywhere: all nodes, whatever runs there and whatever keeps pods away from them now.
        ("gpu=1", 46),
        ("gpu=4", 11),
        ("gpu=5", 5),
        ("gpu=9", 0),
        // Within a topology, nodes without its labels are out.
        ("gpu=1 topology=t", 38),
        ("gpu=1 topology=t preferred=rack", 38),
        // In one domain of it: the best one.
        ("gpu=1 topology=t required=rack", 16),
        ("gpu=4 topology=t required=rack", 4),
        ("gpu=1 topology=t required=host", 8),
        ("gpu=3 topology=t required=host", 2),
        ("gpu=1 topology=t required=zone", 0),
        // A node may be labelled; only a flavor's labels say which nodes are meant.
        ("gpu=1 kind=red", 46),
        ("gpu=1 flavor=kind:red", 6),
        ("gpu=1 topology=none", 0),
    ];
    let away = [" cordoned", " taint=k=v:NoSchedule", " notready"];
    let free = |line: &str| away.iter().fold(line.to_owned(), |line, word| line.replace(word, ""));
    let empty: Vec<String> =
        CLUSTER.lines().filter(|line| !line.trim().starts_with("use")).map(free).collect();
    for (asks, expected) in rows {
        assert_eq!(most_of(CLUSTER, asks), expected, "{asks}");
        let mut board = Board::new(&empty.join("\n"));
        board.line(&format!("pods m 9 {}", asks.replace(" kind=red", "")));
        let pod_set = board.request.pod_sets[0].clone();
        assert_eq!(fitting(&mut board.cluster, &pod_set), u64::from(expected), "{asks}, empty");
    }
}

#[test]
fn an_answer_is_kept_until_nodes_change() {
    let mut board = Board::new(CLUSTER);
    board.line("pods m 9 gpu=1 topology=t required=rack");
    let request = board.request.pod_sets[0].clone();
    let mut ceilings = Ceilings::default();
    assert_eq!(ceilings.of(&mut board.cluster, &request), Some(16));
    board.line("node h gpu=3 rack=r3 host=h");
    assert_eq!(ceilings.of(&mut board.cluster, &request), Some(19));
    board.line("gone d");
    assert_eq!(ceilings.of(&mut board.cluster, &request), Some(11));
    let other = PodSetRequest { count: 100, ..request };
    assert_eq!(
        ceilings.of(&mut board.cluster, &other),
        Some(11),
        "how many are asked for makes no difference"
    );
}

/// Which nodes reach a volume may change while no node does.
#[test]
fn of_pods_with_volumes_nobody_knows() {
    let mut board = Board::new(CLUSTER);
    board.line("pods m 9 gpu=1 claim=c");
    assert_eq!(Ceilings::default().of(&mut board.cluster, &board.request.pod_sets[0]), None);
}
