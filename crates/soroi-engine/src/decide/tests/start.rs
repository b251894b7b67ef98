//! Gangs start: whole or not at all.

use expect_test::expect;

use super::script::check;

#[test]
fn a_gang_waits_rather_than_starting_half_and_starts_when_the_hog_is_gone() {
    check(
        "
        node a gpu=2
        node b gpu=2
        queue cq gpu=4
        pod hog node=a gpu=1
        gang train queue=cq pods=4 gpu=1
        gang small queue=cq pods=2 gpu=1
        show
        gone hog
        end small
        gone small-0
        gone small-1
        show
        ",
        expect![[r#"
            node a gpu=2
            node b gpu=2
            queue cq gpu=4
            pod hog node=a gpu=1
            gang train queue=cq pods=4 gpu=1
              pending train: NoFlavor([("main", [NoPlace { flavor: "default", problem: PlaceProblem { topology: None, asked: 4, fitting: 3, nodes: 2, excluded: {}, closest: None, unproven: false } }])])
            gang small queue=cq pods=2 gpu=1
              admit small; mainx2 [default] b*2
              bind small-0 to b
              bind small-1 to b
              settled small
            show
              a: hog
              b: small-0 small-1
              small: committed, 2 running
              train: pending: NoFlavor([("main", [NoPlace { flavor: "default", problem: PlaceProblem { topology: None, asked: 4, fitting: 3, nodes: 2, excluded: {}, closest: None, unproven: false } }])])
            gone hog
            end small
            gone small-0
            gone small-1
              admit train; mainx4 [default] a*2 b*2
              bind train-0 to a
              bind train-1 to a
              bind train-2 to b
              bind train-3 to b
              settled train
            show
              a: train-0 train-1
              b: train-2 train-3
              train: committed, 4 running
        "#]],
    );
}
