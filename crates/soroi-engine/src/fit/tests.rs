//! What `fit` promises, as tests.

use std::sync::Arc;

use super::{Ask, holds, node_problem, selects, tolerated};
use crate::event::{
    Expression, Name, Node, NodeSelectorTerm, Operator, Shape, Taint, TaintEffect, Toleration,
    TolerationMatch, Unserved,
};
use crate::place::board::node;
use crate::reason::NodeProblem;

fn names(values: &[&str]) -> Vec<Name> {
    values.iter().map(|value| Name::from(*value)).collect()
}

/// Kubernetes 1.36, `labels.Requirement.Matches`.
#[test]
fn operators() {
    use Operator::{DoesNotExist, Exists, Gt, In, Lt, NotIn};
    let table = [
        (In(names(&["a", "b"])), Some("a"), true),
        (In(names(&["a", "b"])), Some("c"), false),
        (In(names(&["a"])), None, false),
        (In(names(&[])), Some("a"), false),
        (NotIn(names(&["a", "b"])), Some("a"), false),
        (NotIn(names(&["a", "b"])), Some("c"), true),
        (NotIn(names(&["a"])), None, true),
        (Exists, Some(""), true),
        (Exists, None, false),
        (DoesNotExist, Some("a"), false),
        (DoesNotExist, None, true),
        (Gt(5), Some("6"), true),
        (Gt(5), Some("5"), false),
        (Gt(5), Some("+6"), true),
        (Gt(-5), Some("-4"), true),
        (Gt(5), Some("6.5"), false),
        (Gt(5), Some("six"), false),
        (Gt(5), Some(""), false),
        (Gt(5), Some(" 6"), false),
        (Gt(5), None, false),
        (Gt(0), Some("9223372036854775807"), true),
        (Gt(0), Some("9223372036854775808"), false),
        (Lt(5), Some("4"), true),
        (Lt(5), Some("5"), false),
        (Lt(5), None, false),
    ];
    for (op, value, expected) in table {
        assert_eq!(holds(&op, value.map(Name::from).as_ref()), expected, "{op:?} of {value:?}");
    }
}

#[test]
fn a_selector_holds_when_all_of_it_does() {
    let labels = [("a".into(), "1".into()), ("b".into(), "2".into())].into();
    let expression = |key: &str, op| Expression { key: key.into(), op };
    assert!(selects(&[], &labels));
    assert!(selects(&[expression("a", Operator::Exists), expression("b", Operator::Gt(1))], &labels));
    assert!(!selects(&[expression("a", Operator::Exists), expression("b", Operator::Gt(2))], &labels));
}

/// Kubernetes 1.36, `Toleration.ToleratesTaint`.
#[test]
fn tolerations() {
    use TaintEffect::{NoExecute, NoSchedule, PreferNoSchedule};
    let exists = || TolerationMatch::Exists;
    let equal = |value: &str| TolerationMatch::Equal(value.into());
    let table = [
        (Some("k"), exists(), None, NoSchedule, true),
        (Some("k"), exists(), Some(NoSchedule), NoSchedule, true),
        (Some("k"), exists(), Some(NoExecute), NoSchedule, false),
        (Some("k"), exists(), Some(PreferNoSchedule), PreferNoSchedule, true),
        (Some("other"), exists(), None, NoSchedule, false),
        (Some("k"), equal("v"), None, NoExecute, true),
        (Some("k"), equal("w"), None, NoExecute, false),
        (Some("k"), equal(""), None, NoExecute, false),
        (None, exists(), None, NoSchedule, true),
        (None, exists(), Some(NoExecute), NoSchedule, false),
        (None, equal("v"), None, NoSchedule, true),
        (None, equal("w"), None, NoSchedule, false),
    ];
    for (key, matches, effect, of_taint, expected) in table {
        let toleration = Toleration { key: key.map(Name::from), matches, effect };
        let taint = Taint { key: "k".into(), value: "v".into(), effect: of_taint };
        assert_eq!(tolerated(&taint, std::iter::once(&toleration)), expected, "{toleration:?} of {taint:?}");
    }
    assert!(!tolerated(&Taint { key: "k".into(), value: "".into(), effect: NoSchedule }, std::iter::empty()));
}

fn tolerating(key: Option<&str>, effect: Option<TaintEffect>) -> Vec<Toleration> {
    vec![Toleration { key: key.map(Name::from), matches: TolerationMatch::Exists, effect }]
}

fn ask(shape: Shape) -> Ask {
    Ask::plain(&Arc::new(shape))
}

fn a_node(words: &str) -> Node {
    node(&words.split_whitespace().collect::<Vec<_>>())
}

#[test]
fn taints_and_cordons() {
    let taint = |key: &str| Some(NodeProblem::Taint { key: key.into(), value: "v".into() });
    let tolerating_k = || Shape { tolerations: tolerating(Some("k"), None), ..Shape::default() };
    let cordon = "node.kubernetes.io/unschedulable";
    let tolerating_cordons =
        |effect| Shape { tolerations: tolerating(Some(cordon), effect), ..Shape::default() };
    let tolerating_all = || Shape { tolerations: tolerating(None, None), ..Shape::default() };
    let table = [
        ("a", Shape::default(), None),
        ("a taint=k=v:NoSchedule", Shape::default(), taint("k")),
        ("a taint=k=v:NoExecute", Shape::default(), taint("k")),
        ("a taint=k=v:PreferNoSchedule", Shape::default(), None),
        ("a taint=k=v:NoSchedule", tolerating_k(), None),
        ("a taint=k=v:NoSchedule taint=l=v:NoExecute", tolerating_k(), taint("l")),
        ("a taint=k=v:NoSchedule taint=l=v:NoExecute", tolerating_all(), None),
        ("a cordoned", Shape::default(), Some(NodeProblem::Unschedulable)),
        ("a cordoned", tolerating_k(), Some(NodeProblem::Unschedulable)),
        ("a cordoned", tolerating_cordons(None), None),
        ("a cordoned", tolerating_cordons(Some(TaintEffect::NoSchedule)), None),
        ("a cordoned", tolerating_cordons(Some(TaintEffect::NoExecute)), Some(NodeProblem::Unschedulable)),
        ("a cordoned", tolerating_all(), None),
        ("a cordoned taint=k=v:NoSchedule", Shape::default(), Some(NodeProblem::Unschedulable)),
        ("a notready", tolerating_all(), Some(NodeProblem::NotReady)),
        ("a notready cordoned", Shape::default(), Some(NodeProblem::NotReady)),
    ];
    for (node, shape, expected) in table {
        assert_eq!(node_problem(&ask(shape.clone()), &a_node(node)), expected, "{node}: {shape:?}");
    }
}

#[test]
fn selectors_and_affinity() {
    let zone = |op| Expression { key: "zone".into(), op };
    let name = |op| Expression { key: "metadata.name".into(), op };
    let labels = |labels: &[Expression]| NodeSelectorTerm { labels: labels.to_vec(), fields: Vec::new() };
    let fields = |fields: &[Expression]| NodeSelectorTerm { labels: Vec::new(), fields: fields.to_vec() };
    let is = |value: &str| Operator::In(names(&[value]));
    let affinity = Some(NodeProblem::Affinity);
    let table = [
        // No requirement, and none that anything could meet.
        (None, None),
        (Some(vec![]), affinity.clone()),
        // An empty term matches nothing, and does not spoil the others.
        (Some(vec![NodeSelectorTerm::default()]), affinity.clone()),
        (Some(vec![NodeSelectorTerm::default(), labels(&[zone(is("z1"))])]), None),
        // Terms are alternatives, expressions are not.
        (Some(vec![labels(&[zone(is("z2"))]), labels(&[zone(is("z1"))])]), None),
        (Some(vec![labels(&[zone(is("z2")), zone(is("z1"))])]), affinity.clone()),
        (Some(vec![labels(&[zone(Operator::NotIn(names(&["z1"])))])]), affinity.clone()),
        (Some(vec![labels(&[Expression { key: "gen".into(), op: Operator::Gt(2) }])]), None),
        (Some(vec![labels(&[Expression { key: "gen".into(), op: Operator::Lt(2) }])]), affinity.clone()),
        (Some(vec![fields(&[name(is("a"))])]), None),
        (Some(vec![fields(&[name(is("b"))])]), affinity.clone()),
        (Some(vec![fields(&[name(Operator::NotIn(names(&["b"])))])]), None),
        (Some(vec![fields(&[name(Operator::NotIn(names(&["a"])))])]), affinity.clone()),
        // Fields know no other operators and no other names.
        (Some(vec![fields(&[name(Operator::Exists)])]), affinity.clone()),
        (Some(vec![fields(&[Expression { key: "metadata.uid".into(), op: is("a") }])]), affinity.clone()),
        // Labels and fields of a term must both hold.
        (
            Some(vec![NodeSelectorTerm { labels: vec![zone(is("z1"))], fields: vec![name(is("b"))] }]),
            affinity.clone(),
        ),
    ];
    let node = a_node("a zone=z1 gen=3");
    for (node_affinity, expected) in table {
        let shape = Shape { node_affinity, ..Shape::default() };
        assert_eq!(node_problem(&ask(shape.clone()), &node), expected, "{shape:?}");
    }
    for (value, expected) in
        [("z1", None), ("z2", Some(NodeProblem::Selector)), ("", Some(NodeProblem::Selector))]
    {
        let shape = Shape { node_selector: [("zone".into(), value.into())].into(), ..Shape::default() };
        assert_eq!(node_problem(&ask(shape), &node), expected, "selector zone={value}");
    }
}

#[test]
fn a_flavor_adds_labels_and_tolerations() {
    let mut with_flavor = ask(Shape::default());
    with_flavor.node_labels = [("pool".into(), "x".into())].into();
    with_flavor.tolerations = tolerating(Some("k"), None);
    let problem = |node: &str| node_problem(&with_flavor, &a_node(node));
    assert_eq!(problem("a pool=x taint=k=v:NoSchedule"), None);
    assert_eq!(problem("a pool=y"), Some(NodeProblem::Selector));
    // The pod's own selector does not give way to the flavor's, nor the other way round.
    let shape = Shape { node_selector: [("pool".into(), "y".into())].into(), ..Shape::default() };
    let torn = Ask { node_labels: with_flavor.node_labels.clone(), ..ask(shape) };
    assert_eq!(node_problem(&torn, &a_node("a pool=x")), Some(NodeProblem::Selector));
    assert_eq!(node_problem(&torn, &a_node("a pool=y")), Some(NodeProblem::Selector));
}

/// A node that might be wrong is not promised; what is wrong with the node itself is said first.
#[test]
fn what_is_not_looked_at_has_no_node() {
    let claims = Arc::new(Shape { unserved: Some(Unserved::ResourceClaims), ..Shape::default() });
    let problem = |shape: &Arc<Shape>, node: &str| node_problem(&Ask::plain(shape), &a_node(node));
    assert_eq!(problem(&claims, "a"), Some(NodeProblem::Unserved(Unserved::ResourceClaims)));
    assert_eq!(problem(&claims, "a cordoned"), Some(NodeProblem::Unschedulable));
    assert_eq!(problem(&claims.without_neighbours(), "a"), None);
}
