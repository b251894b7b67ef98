//! Who stands behind a gang whose victims leave, and what they are told.

use expect_test::expect;

use super::script::check;

#[test]
fn whoever_was_not_asked_is_told_behind_whom_he_waits_until_he_is_asked() {
    check(
        "
        queue q gpu=4 within=lower policy=quota
        gang low queue=q pods=4 gpu=1
        gang early queue=q pods=3 gpu=1
        auto members bind
        gang high queue=q pods=2 gpu=1 prio=5
        hold high
        # The first of its kind, then one that wants the same.
        gang late queue=q pods=1 gpu=1
        gang later queue=q pods=1 gpu=1
        undone low
        ",
        expect![[r#"
            queue q gpu=4 within=lower policy=quota
            gang low queue=q pods=4 gpu=1
              admit low; mainx4 [default]
            gang early queue=q pods=3 gpu=1
              pending early: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 3 more needed
            auto members bind
            gang high queue=q pods=2 gpu=1 prio=5
              hold high; mainx2 [default]; until these leave: low (WithinQueue)
              pending high: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed. Pending the preemption of 1 workload(s)
            hold high
              evict low for high: WithinQueue, /q for /q
              pending early: waiting behind ns/high of its ClusterQueue, for which others are leaving
            gang late queue=q pods=1 gpu=1
              pending late: waiting behind ns/high of its ClusterQueue, for which others are leaving
            gang later queue=q pods=1 gpu=1
              pending later: waiting behind ns/high of its ClusterQueue, for which others are leaving
            undone low
              admit high; mainx2 [default]
              admit late; mainx1 [default]
              admit later; mainx1 [default]
              pending early: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 3 more needed
              pending low: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 4 more needed
        "#]],
    );
}
