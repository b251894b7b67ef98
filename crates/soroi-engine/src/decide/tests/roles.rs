//! Groups with roles: each role has its minimum, and the gang is as whole as its roles are.

use expect_test::expect;

use super::script::check;

#[test]
fn every_role_gets_its_minimum_before_the_others_get_more() {
    check(
        "
        node a gpu=4
        gang ring ps:1:gpu=2 worker:4:gpu=1 min=3 role:ps=1 role:worker=2
        show
        ",
        expect![[r#"
            node a gpu=4
            gang ring ps:1:gpu=2 worker:4:gpu=1 min=3 role:ps=1 role:worker=2
              admit ring; psx1 a*1; workerx2 a*2
              bind ring-ps-0 to a
              bind ring-worker-1 to a
              bind ring-worker-2 to a
              settled ring
              pending ring: couldn't place pod set worker: nodes don't allow to fit any of 2 pod(s): 0/1 nodes are available: 1 Insufficient example.com/gpu
            show
              a: ring-ps-0 ring-worker-1 ring-worker-2
              ring: committed, 3 running
        "#]],
    );
    // Three workers would have places, and would do as three members; nothing without a server does.
    check(
        "
        node a gpu=4
        gang ring worker:4:gpu=1 ps:1:gpu=5 min=3 role:ps=1 role:worker=2
        node b gpu=5
        ",
        expect![[r#"
            node a gpu=4
            gang ring worker:4:gpu=1 ps:1:gpu=5 min=3 role:ps=1 role:worker=2
              pending ring: couldn't place pod set ps: nodes don't allow to fit any of 1 pod(s): 0/1 nodes are available: 1 Insufficient example.com/gpu; none would ever fit, even on empty nodes
            node b gpu=5
              admit ring; workerx4 a*4; psx1 b*1
              bind ring-worker-0 to a
              bind ring-worker-1 to a
              bind ring-worker-2 to a
              bind ring-worker-3 to a
              bind ring-ps-4 to b
              settled ring
        "#]],
    );
}

#[test]
fn a_role_without_its_pods_is_waited_for() {
    check(
        "
        node a gpu=8
        gang ring ps:0:gpu=1 worker:4:gpu=1 min=3 role:ps=1
        gang ring ps:1:gpu=1 worker:4:gpu=1 min=3 role:ps=1
        ",
        expect![[r#"
            node a gpu=8
            gang ring ps:0:gpu=1 worker:4:gpu=1 min=3 role:ps=1
              pending ring: waiting for pods of role ps: 0 of 1 exist
            gang ring ps:1:gpu=1 worker:4:gpu=1 min=3 role:ps=1
              admit ring; psx1 a*1; workerx4 a*4
              bind ring-ps-0 to a
              bind ring-worker-1 to a
              bind ring-worker-2 to a
              bind ring-worker-3 to a
              bind ring-worker-4 to a
              settled ring
        "#]],
    );
}

#[test]
fn quota_goes_to_what_every_role_needs() {
    check(
        "
        node a gpu=8
        queue cq gpu=4
        gang ring queue=cq worker:4:gpu=1 ps:1:gpu=1 eval:1:gpu=1 min=3 role:ps=1 role:worker=2
        queue cq gpu=2
        gang next queue=cq worker:4:gpu=1 ps:1:gpu=1 min=3 role:ps=1 role:worker=2
        ",
        expect![[r#"
            node a gpu=8
            queue cq gpu=4
            gang ring queue=cq worker:4:gpu=1 ps:1:gpu=1 eval:1:gpu=1 min=3 role:ps=1 role:worker=2
              admit ring; workerx3 [default] a*3; psx1 [default] a*1; evalx0 [default]
              bind ring-worker-0 to a
              bind ring-worker-1 to a
              bind ring-worker-2 to a
              bind ring-ps-4 to a
              settled ring
              pending ring: couldn't assign flavors to pod set worker: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            queue cq gpu=2
            gang next queue=cq worker:4:gpu=1 ps:1:gpu=1 min=3 role:ps=1 role:worker=2
              pending next: couldn't assign flavors to pod set worker: insufficient unused quota for example.com/gpu in flavor default, 2 more needed; couldn't assign flavors to pod set ps: insufficient quota for example.com/gpu in flavor default, previously considered podsets requests (2) + current podset request (1) > maximum capacity (2)
        "#]],
    );
}

#[test]
fn a_role_below_its_minimum_breaks_the_gang() {
    check(
        "
        node a gpu=4
        gang ring ps:1:gpu=1 worker:3:gpu=1 min=3 role:ps=1 role:worker=2
        fail ring-worker-1
        follow ring
        wait 100s
        fail ring-ps-0
        follow ring
        wait 50s
        show
        members ring
        follow ring
        fail ring-ps-4
        follow ring
        wait 60s
        ",
        expect![[r#"
            node a gpu=4
            gang ring ps:1:gpu=1 worker:3:gpu=1 min=3 role:ps=1 role:worker=2
              admit ring; psx1 a*1; workerx3 a*3
              bind ring-ps-0 to a
              bind ring-worker-1 to a
              bind ring-worker-2 to a
              bind ring-worker-3 to a
              settled ring
            fail ring-worker-1
            follow ring
              settled ring
            wait 100s
            fail ring-ps-0
            follow ring
            wait 50s
            show
              a: ring-worker-2 ring-worker-3 (ring)
              ring: committed, 2 running
            members ring
              bind ring-ps-4 to a
              place ring; psx1 a*1; workerx4 a*3
              bind ring-worker-5 to a
              settled ring
            follow ring
            fail ring-ps-4
            follow ring
            wait 60s
              undo ring after its start: RecoveryTimeout(Lack { role: Some("ps"), have: 0, need: 1 })
              pending ring: waiting for pods of role ps: 0 of 1 exist
        "#]],
    );
}

#[test]
fn members_do_not_sit_where_another_role_belongs() {
    check(
        "
        node a gpu=3
        auto commit bind
        gang ring ps:1:gpu=1 worker:2:gpu=1 min=3 role:ps=1 role:worker=2
        pod ring-worker-0 of=ring role=worker gpu=1
        pod ring-worker-1 of=ring role=worker gpu=1
        pod ring-worker-2 of=ring role=worker gpu=1
        pod ring-ps-0 of=ring role=ps gpu=1
        ",
        expect![[r#"
            node a gpu=3
            auto commit bind
            gang ring ps:1:gpu=1 worker:2:gpu=1 min=3 role:ps=1 role:worker=2
              admit ring; psx1 a*1; workerx2 a*2
            pod ring-worker-0 of=ring role=worker gpu=1
            pod ring-worker-1 of=ring role=worker gpu=1
            pod ring-worker-2 of=ring role=worker gpu=1
            pod ring-ps-0 of=ring role=ps gpu=1
              bind ring-ps-0 to a
              bind ring-worker-0 to a
              bind ring-worker-1 to a
              settled ring
              pending ring: couldn't place pod set worker: nodes don't allow to fit any of 1 pod(s): 0/1 nodes are available: 1 Insufficient example.com/gpu
        "#]],
    );
}

#[test]
fn a_member_that_ended_well_has_done_its_part_in_its_role() {
    check(
        "
        node a gpu=4
        gang ring ps:1:gpu=1 worker:3:gpu=1 min=4 role:ps=1 role:worker=3
        done ring-ps-0
        follow ring
        wait 100s
        show
        fail ring-worker-1
        follow ring
        wait 60s
        ",
        expect![[r#"
            node a gpu=4
            gang ring ps:1:gpu=1 worker:3:gpu=1 min=4 role:ps=1 role:worker=3
              admit ring; psx1 a*1; workerx3 a*3
              bind ring-ps-0 to a
              bind ring-worker-1 to a
              bind ring-worker-2 to a
              bind ring-worker-3 to a
              settled ring
            done ring-ps-0
            follow ring
            wait 100s
            show
              a: ring-worker-1 ring-worker-2 ring-worker-3
              ring: committed, 3 running
            fail ring-worker-1
            follow ring
            wait 60s
              undo ring after its start: RecoveryTimeout(Lack { role: Some("worker"), have: 2, need: 3 })
              pending ring: waiting for pods of role worker: 2 of 3 exist
        "#]],
    );
}

#[test]
fn other_members_that_fit_are_found_when_the_first_do_not() {
    // The large ones come first in the order of pod sets, and have no room.
    check(
        "
        gang ring large:2:gpu=4 small:2:gpu=1 min=2
        node a gpu=1
        node b gpu=1
        ",
        expect![[r#"
            gang ring large:2:gpu=4 small:2:gpu=1 min=2
              pending ring: couldn't place pod set large: nodes don't allow to fit any of 2 pod(s); none would ever fit, even on empty nodes
            node a gpu=1
              pending ring: couldn't place pod set large: nodes don't allow to fit any of 2 pod(s): 0/1 nodes are available: 1 Insufficient example.com/gpu; none would ever fit, even on empty nodes
            node b gpu=1
              admit ring; largex0; smallx2 a*1 b*1
              bind ring-small-2 to a
              bind ring-small-3 to b
              settled ring
              pending ring: couldn't place pod set large: nodes don't allow to fit any of 2 pod(s): 0/2 nodes are available: 2 Insufficient example.com/gpu; none would ever fit, even on empty nodes
        "#]],
    );
    check(
        "
        node a gpu=8
        queue cq gpu=1
        gang ring queue=cq large:1:gpu=4 small:2:gpu=1 min=2
        queue cq gpu=5
        ",
        expect![[r#"
            node a gpu=8
            queue cq gpu=1
            gang ring queue=cq large:1:gpu=4 small:2:gpu=1 min=2
              pending ring: couldn't assign flavors to pod set large: insufficient quota for example.com/gpu in flavor default, previously considered podsets requests (0) + current podset request (4) > maximum capacity (1)
            queue cq gpu=5
              admit ring; largex1 [default] a*1; smallx1 [default] a*1
              bind ring-large-0 to a
              bind ring-small-1 to a
              settled ring
              pending ring: couldn't assign flavors to pod set small: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
        "#]],
    );
}

#[test]
fn roles_are_known_again_after_a_restart() {
    check(
        "
        node a gpu=4
        gang ring ps:1:gpu=1 worker:3:gpu=1 min=3 role:ps=1 role:worker=2
        fail ring-ps-0
        follow ring
        restart
        show
        members ring
        follow ring
        show
        ",
        expect![[r#"
            node a gpu=4
            gang ring ps:1:gpu=1 worker:3:gpu=1 min=3 role:ps=1 role:worker=2
              admit ring; psx1 a*1; workerx3 a*3
              bind ring-ps-0 to a
              bind ring-worker-1 to a
              bind ring-worker-2 to a
              bind ring-worker-3 to a
              settled ring
            fail ring-ps-0
            follow ring
            restart
            show
              a: ring-worker-1 ring-worker-2 ring-worker-3
              ring: committed, 3 running
            members ring
            follow ring
              bind ring-ps-4 to a
              settled ring
            show
              a: ring-ps-4 ring-worker-1 ring-worker-2 ring-worker-3
              ring: committed, 4 running
        "#]],
    );
}
