//! Which plan shows that a decision was written down, row by row.

use super::*;
use crate::decide::gang::Held;
use crate::quota::Charge;

fn admission(node: &str, count: u32, flavor: &str) -> Admission {
    let set = PodSetAdmission {
        name: "main".into(),
        count,
        flavors: BTreeMap::from([("gpu".into(), flavor.into())]),
        usage: BTreeMap::new(),
        nodes: vec![(node.into(), count)],
        topology: None,
    };
    Admission { gang: "g".into(), policy: Policy::Unified, cluster_queue: None, pod_sets: vec![set] }
}

#[test]
fn a_plan_shows_what_is_held_if_it_is_as_new_and_gives_the_same() {
    let charge = Charge { kueue: None, volcano: None };
    let held = Held::new(admission("a", 2, "red"), vec![2], charge, Vec::new(), Phase::Assumed, 10_000);
    let rows = [
        (PlanPhase::Committed, 10_000, admission("a", 2, "red"), true),
        (PlanPhase::Settled, 20_000, admission("a", 2, "red"), true),
        // The time of a plan may have been cut to seconds.
        (PlanPhase::Committed, 9_001, admission("a", 2, "red"), true),
        (PlanPhase::Committed, 9_000, admission("a", 2, "red"), false),
        (PlanPhase::Committed, 10_000, admission("b", 2, "red"), false),
        (PlanPhase::Committed, 10_000, admission("a", 1, "red"), false),
        (PlanPhase::Committed, 10_000, admission("a", 2, "blue"), false),
        (PlanPhase::Holding, 10_000, admission("a", 2, "red"), false),
        (PlanPhase::Undoing, 10_000, admission("a", 2, "red"), false),
    ];
    for (at, (phase, progressed_at, admission, expected)) in rows.into_iter().enumerate() {
        let plan = Plan {
            gang: "g".into(),
            owners: Vec::new(),
            phase,
            admission,
            progressed_at,
            victims: Vec::new(),
        };
        assert_eq!(shows(&plan, &held), expected, "row {at}");
    }
}
