//! Groups whose pods come mixed up: the older one goes first.

use expect_test::expect;

use super::script::check;

#[test]
fn the_older_group_goes_first_although_the_younger_has_all_its_pods_before() {
    check(
        "
        node a gpu=4
        gang old worker:3:gpu=1 min=4
        wait 50ms
        gang young worker:4:gpu=1 min=4
        wait 100ms
        change old count=4
        ",
        expect![[r#"
            node a gpu=4
            gang old worker:3:gpu=1 min=4
              pending old: waiting for pods of the group: 3 of 4 exist
            wait 50ms
            gang young worker:4:gpu=1 min=4
            wait 100ms
            change old count=4
              admit old; workerx4 a*4
              pending young: couldn't place pod set worker: nodes don't allow to fit any of 4 pod(s): 0/1 nodes are available: 1 Insufficient example.com/gpu
              bind old-0 to a
              bind old-1 to a
              bind old-2 to a
              bind old-3 to a
              settled old
        "#]],
    );
}

#[test]
fn a_group_that_stays_incomplete_stops_nobody() {
    check(
        "
        node a gpu=4
        gang old worker:3:gpu=1 min=4
        wait 1s
        gang young worker:4:gpu=1 min=4
        ",
        expect![[r#"
            node a gpu=4
            gang old worker:3:gpu=1 min=4
              pending old: waiting for pods of the group: 3 of 4 exist
            wait 1s
            gang young worker:4:gpu=1 min=4
              admit young; workerx4 a*4
              bind young-0 to a
              bind young-1 to a
              bind young-2 to a
              bind young-3 to a
              settled young
        "#]],
    );
    // Its pods were coming in a moment ago: that is waited for, and no longer.
    check(
        "
        node a gpu=4
        gang old worker:3:gpu=1 min=4
        gang young worker:4:gpu=1 min=4
        wait 199ms
        wait 1ms
        ",
        expect![[r#"
            node a gpu=4
            gang old worker:3:gpu=1 min=4
              pending old: waiting for pods of the group: 3 of 4 exist
            gang young worker:4:gpu=1 min=4
            wait 199ms
            wait 1ms
              admit young; workerx4 a*4
              bind young-0 to a
              bind young-1 to a
              bind young-2 to a
              bind young-3 to a
              settled young
        "#]],
    );
}

#[test]
fn one_that_comes_in_for_long_or_goes_lets_the_others_start() {
    check(
        "
        node a gpu=4
        gang old worker:1:gpu=1 min=90
        gang young worker:4:gpu=1 min=4
        wait 190ms
        change old count=2
        wait 190ms
        end old
        ",
        expect![[r#"
            node a gpu=4
            gang old worker:1:gpu=1 min=90
              pending old: waiting for pods of the group: 1 of 90 exist
            gang young worker:4:gpu=1 min=4
            wait 190ms
            change old count=2
              pending old: waiting for pods of the group: 2 of 90 exist
            wait 190ms
            end old
              admit young; workerx4 a*4
              bind young-0 to a
              bind young-1 to a
              bind young-2 to a
              bind young-3 to a
              settled young
        "#]],
    );
    let trickle: String = (2..20).map(|pods| format!("wait 150ms\nchange old count={pods}\n")).collect();
    let story =
        format!("node a gpu=4\ngang old worker:1:gpu=1 min=90\ngang young worker:4:gpu=1 min=4\n{trickle}");
    let played = super::script::play(&story);
    let starts = played.lines().position(|line| line.contains("admit young")).expect("it starts");
    let before = played.lines().take(starts).filter(|line| line.starts_with("wait ")).count();
    assert_eq!(before, 14, "after two seconds it starts:\n{played}");
}

#[test]
fn only_those_of_the_same_queue_stand_aside() {
    check(
        "
        node a gpu=8
        queue q gpu=4
        door q
        queue r gpu=4
        door r
        gang old worker:3:gpu=1 min=4 queue=q
        gang young worker:4:gpu=1 min=4 queue=r
        gang job worker:1:gpu=1 queue=q
        wait 200ms
        ",
        expect![[r#"
            node a gpu=8
            queue q gpu=4
            door q
            queue r gpu=4
            door r
            gang old worker:3:gpu=1 min=4 queue=q
              pending old: waiting for pods of the group: 3 of 4 exist
            gang young worker:4:gpu=1 min=4 queue=r
              admit young; workerx4 [default] a*4
              bind young-0 to a
              bind young-1 to a
              bind young-2 to a
              bind young-3 to a
              settled young
            gang job worker:1:gpu=1 queue=q
            wait 200ms
              admit job; workerx1 [default] a*1
              bind job-0 to a
              settled job
        "#]],
    );
}
