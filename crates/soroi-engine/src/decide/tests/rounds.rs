//! Who competes with whom, and who takes fewer pods than it asked for.

use expect_test::expect;

use super::script::check;

#[test]
fn heads_meet_in_the_round_in_which_kueue_would_try_them() {
    // The second of queue a is tried when the first has been, and by then the first of b has started.
    check(
        "
        queue hog cohort=team gpu=2 policy=quota
        queue a cohort=team gpu=0 policy=quota
        queue b cohort=team gpu=0 policy=quota
        gang h queue=hog pods=2 gpu=1
        gang a-big queue=a pods=3 gpu=1 prio=9
        gang a-small queue=a pods=1 gpu=1 prio=5
        gang b-all queue=b pods=2 gpu=1
        end h
        ",
        expect![[r#"
            queue hog cohort=team gpu=2 policy=quota
            queue a cohort=team gpu=0 policy=quota
            queue b cohort=team gpu=0 policy=quota
            gang h queue=hog pods=2 gpu=1
              admit h; mainx2 [default]
            gang a-big queue=a pods=3 gpu=1 prio=9
              pending a-big: couldn't assign flavors to pod set main: insufficient quota for example.com/gpu in flavor default, previously considered podsets requests (0) + current podset request (3) > maximum capacity (2)
            gang a-small queue=a pods=1 gpu=1 prio=5
              pending a-small: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            gang b-all queue=b pods=2 gpu=1
              pending b-all: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed
            end h
              admit b-all; mainx2 [default]
        "#]],
    );
}

#[test]
fn a_head_that_lost_its_flavor_competes_again() {
    // Both would take f. Who comes second competes again with the next of the other queue, which need
    // not borrow for g.
    check(
        "
        flavor f
        queue a cohort=team gpu@f=0 gpu@g=0 policy=quota
        queue b cohort=team gpu@f=0 gpu@g=1 policy=quota
        queue lender cohort=team gpu@f=1 gpu@g=0 policy=quota
        gang a1 queue=a pods=1 gpu=1 prio=1
        gang b1 queue=b pods=1 gpu=1 prio=2
        gang b2 queue=b pods=1 gpu=1
        flavor g
        ",
        expect![[r#"
            flavor f
            queue a cohort=team gpu@f=0 gpu@g=0 policy=quota
            queue b cohort=team gpu@f=0 gpu@g=1 policy=quota
            queue lender cohort=team gpu@f=1 gpu@g=0 policy=quota
            gang a1 queue=a pods=1 gpu=1 prio=1
              pending a1: ClusterQueue a is inactive: it references missing ResourceFlavor(s): g
            gang b1 queue=b pods=1 gpu=1 prio=2
              pending b1: ClusterQueue b is inactive: it references missing ResourceFlavor(s): g
            gang b2 queue=b pods=1 gpu=1
              pending b2: ClusterQueue b is inactive: it references missing ResourceFlavor(s): g
            flavor g
              admit b1; mainx1 [f]
              admit b2; mainx1 [g]
              pending a1: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor f, 1 more needed, insufficient unused quota for example.com/gpu in flavor g, 1 more needed
        "#]],
    );
}

#[test]
fn fewer_pods_start_where_fewer_would_do() {
    check(
        "
        node n gpu=8
        queue q gpu=6
        gang some queue=q pods=10 least=4 gpu=1
        usage
        ",
        expect![[r#"
            node n gpu=8
            queue q gpu=6
            gang some queue=q pods=10 least=4 gpu=1
              admit some; mainx6 [default] n*6
              bind some-0 to n
              bind some-1 to n
              bind some-2 to n
              bind some-3 to n
              bind some-4 to n
              bind some-5 to n
              settled some
            usage
              q: 0 pending, 1 reserving, 1 admitted; gpu@default 6
        "#]],
    );
}

#[test]
fn as_many_start_as_there_are_places_for() {
    check(
        "
        node n gpu=5
        queue q gpu=6
        gang some queue=q pods=10 least=4 gpu=1
        ",
        expect![[r#"
            node n gpu=5
            queue q gpu=6
            gang some queue=q pods=10 least=4 gpu=1
              admit some; mainx5 [default] n*5
              bind some-0 to n
              bind some-1 to n
              bind some-2 to n
              bind some-3 to n
              bind some-4 to n
              settled some
        "#]],
    );
}

#[test]
fn too_few_for_the_least_number_wait_until_that_fits() {
    check(
        "
        queue q gpu=6 policy=quota
        gang first queue=q pods=3 gpu=1
        gang some queue=q pods=10 least=4 gpu=1
        gang other queue=q pods=10 least=3 gpu=1
        end first
        end other
        ",
        expect![[r#"
            queue q gpu=6 policy=quota
            gang first queue=q pods=3 gpu=1
              admit first; mainx3 [default]
            gang some queue=q pods=10 least=4 gpu=1
              pending some: couldn't assign flavors to pod set main: insufficient quota for example.com/gpu in flavor default, previously considered podsets requests (0) + current podset request (10) > maximum capacity (6)
            gang other queue=q pods=10 least=3 gpu=1
              admit other; mainx3 [default]
            end first
            end other
              admit some; mainx6 [default]
        "#]],
    );
}
