//! Random small clusters and gangs with constraints among pods, compared with trying everything by
//! a second reading of the rules: written for one pod at a time, without counters.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::event::{Name, Neighbours, Node};
use crate::fit::node_problem;
use crate::place::PodSetRequest;
use crate::place::board::{Board, node, pods};

/// How many instances are drawn.
const INSTANCES: u32 = 20_000;
/// Of what fits, so much must be found: thousandths.
const FOUND_MIN: u64 = 999;

/// Lines of a [`Board`].
#[derive(Clone, Debug)]
struct Case {
    nodes: Vec<String>,
    used: Vec<(usize, String)>,
    pods: Vec<String>,
}

fn demands() -> impl Strategy<Value = String> {
    let one = prop::sample::select(vec![
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "apart=host:x",
        "apart=zone:x",
        "apart=zone:y",
        "near=zone:x",
        "near=host:y",
        "near=zone:y",
        "spread=zone:x:1",
        "spread=host:x:1",
        "spread=zone:x:2",
        "spread=zone:x:1:3",
        "spread=zone:y:1:1:all",
        "spread=zone:*:1:2",
        "port=80",
        "port=81",
    ]);
    // What pods would like must not matter to whether they fit, nor to the rules.
    let liked = prop::sample::select(vec![
        "",
        "",
        "",
        "",
        "likes=zone:a:1",
        "likes=zone:b:9",
        "fond=zone:x:5",
        "fond=host:y:5",
        "shy=host:x:5",
        "shy=zone:y:5",
        "even=zone:x:1",
        "even=host:y:1",
    ]);
    (one.clone(), one, liked).prop_map(|(one, other, liked)| format!("{one} {other} {liked}"))
}

fn cases() -> impl Strategy<Value = Case> {
    let zone = prop::sample::select(vec!["zone=a", "zone=b", "zone=c", ""]);
    let special = prop::sample::select(vec![
        "",
        "",
        "",
        "taint=k=v:PreferNoSchedule",
        "taint=k=v:NoSchedule",
        "cordoned",
    ]);
    let nodes = prop::collection::vec((2..=6i64, 2..=6i64, zone, special), 2..=6).prop_map(|nodes| {
        let line = |(at, (gpu, slots, zone, special)): (usize, (i64, i64, &str, &str))| {
            format!("{} gpu={gpu} pods={slots} {zone} {special}", char::from(b'a' + at as u8))
        };
        nodes.into_iter().enumerate().map(line).collect::<Vec<_>>()
    });
    let name = prop::sample::select(vec!["is=x", "is=y", "is=z"]);
    let used = prop::collection::vec((0..6usize, name.clone(), 0..=1i64, demands()), 0..3);
    let used = used.prop_map(|used| {
        used.into_iter().map(|(at, name, gpu, demands)| (at, format!("gpu={gpu} {name} {demands}"))).collect()
    });
    let special = prop::sample::select(vec!["", "", "", "zone=a", "tolerate=k"]);
    let sets = prop::collection::vec((1..=4u32, 0..=2i64, name, demands(), special), 1..=3);
    let sets = sets.prop_map(|sets| {
        let (mut lines, mut sum) = (Vec::new(), 0);
        for (at, (count, gpu, name, demands, special)) in sets.into_iter().enumerate() {
            sum += count;
            if sum <= 8 {
                lines.push(format!("m{at} {count} gpu={gpu} {name} {demands} {special}"));
            }
        }
        lines
    });
    (nodes, used, sets).prop_map(|(nodes, mut used, pods): (_, Vec<(usize, String)>, _)| {
        let nodes: Vec<String> = nodes;
        used.retain(|(at, _)| *at < nodes.len());
        Case { nodes, used, pods }
    })
}

impl Case {
    fn text(&self) -> String {
        let mut text = String::new();
        for node in &self.nodes {
            let _ = writeln!(text, "node {node}");
        }
        for (at, used) in &self.used {
            let _ = writeln!(text, "use {} {used}", char::from(b'a' + *at as u8));
        }
        for pods in &self.pods {
            let _ = writeln!(text, "pods {pods}");
        }
        text
    }
}

/// A pod on a node.
#[derive(Clone)]
struct Seated {
    node: usize,
    pod: usize,
}

/// The rules, for one pod that comes to where others are.
struct World {
    nodes: Vec<Node>,
    /// Kinds of pods: those that are there, then those of the request.
    kinds: Vec<PodSetRequest>,
    seated: Vec<Seated>,
    seen: std::collections::BTreeSet<Vec<Vec<u8>>>,
}

impl World {
    fn new(case: &Case) -> (Self, usize) {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let line = |text: &str| {
            let words = words(text);
            pods(&words.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let nodes = case.nodes.iter().map(|text| {
            let words = words(text);
            node(&words.iter().map(String::as_str).collect::<Vec<_>>())
        });
        let used = case.used.iter().map(|(_, text)| line(&format!("used 1 {text}")));
        let kinds: Vec<PodSetRequest> = used.chain(case.pods.iter().map(|text| line(text))).collect();
        let seated = case.used.iter().enumerate().map(|(pod, (node, _))| Seated { node: *node, pod });
        let world =
            Self { nodes: nodes.collect(), kinds, seated: seated.collect(), seen: Default::default() };
        (world, case.used.len())
    }

    fn demands(&self, pod: usize) -> Option<&Neighbours> {
        self.kinds[pod].ask.shape.neighbours.as_deref()
    }

    fn is(&self, pods: &crate::event::PodSelector, pod: usize) -> bool {
        let who = self.kinds[pod].who.as_ref().unwrap();
        pods.selects(&who.namespace, None, &who.labels)
    }

    fn value(&self, node: usize, key: &Name) -> Option<&Name> {
        self.nodes[node].labels.get(key)
    }

    fn may(&self, pod: usize, node: usize) -> bool {
        node_problem(&self.kinds[pod].ask, &self.nodes[node]).is_none()
            && self.has_room(pod, node)
            && self.ports_free(pod, node)
            && self.is_even(pod, node)
            && self.is_near(pod, node)
            && self.is_apart(pod, node)
    }

    fn has_room(&self, pod: usize, node: usize) -> bool {
        let mut free: BTreeMap<Name, i64> = self.nodes[node].allocatable.clone();
        let there = self.seated.iter().filter(|one| one.node == node).map(|one| one.pod).chain([pod]);
        for pod in there {
            *free.entry("pods".into()).or_default() -= 1;
            for (name, amount) in &self.kinds[pod].ask.shape.requests {
                *free.entry(name.clone()).or_default() -= amount;
            }
        }
        let asked = &self.kinds[pod].ask.shape.requests;
        free[&Name::from("pods")] >= 0 && asked.iter().all(|(name, amount)| *amount == 0 || free[name] >= 0)
    }

    fn ports_free(&self, pod: usize, node: usize) -> bool {
        let own = self.demands(pod).map_or(&[][..], |demands| &demands.ports);
        self.seated.iter().filter(|one| one.node == node).all(|one| {
            let taken = self.demands(one.pod).map_or(&[][..], |demands| &demands.ports);
            !taken.iter().any(|port| own.iter().any(|own| own.port == port.port))
        })
    }

    fn is_even(&self, pod: usize, node: usize) -> bool {
        let Some(demands) = self.demands(pod) else { return true };
        demands.spread.iter().all(|spread| {
            let Some(here) = self.value(node, &spread.topology_key) else { return false };
            let counts_at = |at: &usize| {
                let node = &self.nodes[*at];
                let ask = &self.kinds[pod].ask;
                demands.spread.iter().all(|one| node.labels.contains_key(&one.topology_key))
                    && (!spread.honours_affinity || crate::fit::selects_node(ask, node))
            };
            let mut domains: BTreeMap<&Name, u32> = BTreeMap::new();
            for at in (0..self.nodes.len()).filter(counts_at) {
                let there = self.seated.iter().filter(|one| one.node == at);
                // A selector that is empty selects everybody, and kube-scheduler counts nobody then.
                let any = !spread.pods.labels.as_deref().is_some_and(<[_]>::is_empty);
                let there = there.filter(|one| any && self.is(&spread.pods, one.pod)).count();
                *domains.entry(self.value(at, &spread.topology_key).unwrap()).or_default() += there as u32;
            }
            let least = match (domains.len() as u32) < spread.min_domains {
                true => 0,
                false => domains.values().copied().min().unwrap_or(0),
            };
            let own = u32::from(self.is(&spread.pods, pod));
            // Not to be missing: every constraint's key must be there.
            demands.spread.iter().all(|one| self.value(node, &one.topology_key).is_some())
                && domains.get(here).copied().unwrap_or(0) + own <= spread.max_skew + least
        })
    }

    fn is_near(&self, pod: usize, node: usize) -> bool {
        let Some(demands) = self.demands(pod) else { return true };
        let all = |pod: usize| demands.affinity.iter().all(|term| self.is(&term.pods, pod));
        let near = |key: &Name| {
            let here = self.value(node, key);
            self.seated.iter().any(|one| all(one.pod) && here.is_some() && self.value(one.node, key) == here)
        };
        let labelled = demands.affinity.iter().all(|term| self.value(node, &term.topology_key).is_some());
        let nobody = !self.seated.iter().any(|one| {
            all(one.pod)
                && demands.affinity.iter().any(|term| self.value(one.node, &term.topology_key).is_some())
        });
        labelled && (demands.affinity.iter().all(|term| near(&term.topology_key)) || nobody && all(pod))
    }

    fn is_apart(&self, pod: usize, node: usize) -> bool {
        self.seated.iter().all(|one| {
            let same = |key: &Name| {
                self.value(node, key).is_some() && self.value(node, key) == self.value(one.node, key)
            };
            let against = |who: usize, whom: usize| {
                let terms = self.demands(who).map_or(&[][..], |demands| &demands.anti_affinity);
                terms.iter().any(|term| self.is(&term.pods, whom) && same(&term.topology_key))
            };
            !against(pod, one.pod) && !against(one.pod, pod)
        })
    }

    /// Whether the pods can come one after the other in some order.
    fn can_all_come(&mut self, left: &mut [u32], first: usize) -> bool {
        if left.iter().all(|left| *left == 0) {
            return true;
        }
        let mut key = vec![vec![0u8; self.nodes.len()]; left.len()];
        for one in self.seated.iter().filter(|one| one.pod >= first) {
            key[one.pod - first][one.node] += 1;
        }
        if !self.seen.insert(key) {
            return false;
        }
        for set in 0..left.len() {
            for node in 0..self.nodes.len() {
                if left[set] == 0 || !self.may(first + set, node) {
                    continue;
                }
                left[set] -= 1;
                self.seated.push(Seated { node, pod: first + set });
                let found = self.can_all_come(left, first);
                self.seated.pop();
                left[set] += 1;
                if found {
                    return true;
                }
            }
        }
        false
    }
}

/// Whether the answer, as counts per node, can be reached one pod after the other.
fn can_come_so(case: &Case, found: &[Vec<(Name, u32)>]) -> bool {
    fn follow(world: &mut World, first: usize, left: &mut Vec<BTreeMap<usize, u32>>) -> bool {
        if left.iter().all(|nodes| nodes.values().all(|count| *count == 0)) {
            return true;
        }
        if !world
            .seen
            .insert(left.iter().map(|nodes| nodes.values().map(|count| *count as u8).collect()).collect())
        {
            return false;
        }
        for set in 0..left.len() {
            for node in left[set].keys().copied().collect::<Vec<_>>() {
                if left[set][&node] == 0 || !world.may(first + set, node) {
                    continue;
                }
                *left[set].get_mut(&node).unwrap() -= 1;
                world.seated.push(Seated { node, pod: first + set });
                let found = follow(world, first, left);
                world.seated.pop();
                *left[set].get_mut(&node).unwrap() += 1;
                if found {
                    return true;
                }
            }
        }
        false
    }
    let (mut world, first) = World::new(case);
    let at = |name: &Name| usize::from(name.as_bytes()[0] - b'a');
    let mut left: Vec<BTreeMap<usize, u32>> =
        found.iter().map(|nodes| nodes.iter().map(|(name, count)| (at(name), *count)).collect()).collect();
    follow(&mut world, first, &mut left)
}

/// Nothing is found that is not there, what is said to be impossible is, and of what fits nearly all
/// is found.
#[test]
fn agrees_with_trying_everything() {
    let seed = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), seed);
    let (mut fit, mut found, mut unproven) = (0u64, 0u64, 0u64);
    for _ in 0..INSTANCES {
        let case = cases().new_tree(&mut runner).unwrap().current();
        let answer = Board::new(&case.text()).place();
        match answer {
            Ok(placement) => {
                let nodes: Vec<_> = placement.pod_sets.iter().map(|set| set.nodes.clone()).collect();
                let counts: Vec<u32> = nodes.iter().map(|set| set.iter().map(|(_, n)| n).sum()).collect();
                let asked =
                    case.pods.iter().map(|text| text.split_whitespace().nth(1).unwrap().parse().unwrap());
                assert_eq!(counts, asked.collect::<Vec<u32>>(), "{}", case.text());
                assert!(can_come_so(&case, &nodes), "found {nodes:?} in\n{}", case.text());
                (fit, found) = (fit + 1, found + 1);
            }
            Err(problems) => {
                let (mut world, first) = World::new(&case);
                let mut left: Vec<u32> = world.kinds[first..].iter().map(|set| set.count).collect();
                let fits = world.can_all_come(&mut left, first);
                let proven = problems.iter().all(|(_, problem)| !problem.unproven);
                assert!(!(fits && proven), "said to be impossible:\n{}", case.text());
                fit += u64::from(fits);
                unproven += u64::from(!proven);
            }
        }
    }
    assert!(found * 1000 >= fit * FOUND_MIN, "{found} of {fit} found");
    assert!(fit > u64::from(INSTANCES) / 4 && fit < u64::from(INSTANCES) * 3 / 4, "{fit} fit: a dull test");
    assert!(unproven * 1000 <= u64::from(INSTANCES), "{unproven} not proven");
}

/// Numbers of nodes and domains follow the order in which nodes came; no answer does.
#[test]
fn the_order_in_which_nodes_come_does_not_matter() {
    let seed = TestRng::from_seed(RngAlgorithm::ChaCha, &[9; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), seed);
    for at in 0..INSTANCES / 10 {
        let case = cases().new_tree(&mut runner).unwrap().current();
        let mut backwards = case.clone();
        backwards.nodes.reverse();
        let packing = ["", "packing Spread\n", "packing Fragmentation\n"][at as usize % 3];
        let answer = |case: &Case| Board::new(&format!("{packing}{}", case.text())).place();
        assert_eq!(answer(&case), answer(&backwards), "{packing}{}", case.text());
    }
}
