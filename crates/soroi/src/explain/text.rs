//! An account as a page for people.
//!
//! Knows words and columns; never what follows from a number.

use std::fmt::Write as _;

use soroi_control::snapshot::{Answer, Asked, Outside};
use soroi_engine::account::{
    Account, FlavorAccount, PlacesAccount, QuotaAccount, Remedy, SetAccount, Standing, Step,
};
use soroi_engine::event::{Amount, Name};
use soroi_engine::reason::{Coarser, NodeProblem};
use soroi_quantity::display as quantity;

/// Names in one line; whoever has more nodes than that reads numbers.
const NAMES_SHOWN: usize = 8;
/// Nodes whose shortage is told: the best ones are where to look.
const SHORT_SHOWN: usize = 3;

/// How a kind is called.
pub(super) fn kind(asked: Asked) -> &'static str {
    match asked {
        Asked::Job => "Job",
        Asked::Workload => "Workload",
        Asked::PodGroup => "PodGroup",
        Asked::Pod => "Pod",
    }
}

/// The whole answer.
pub(super) fn page(asked: Asked, (namespace, name): (&str, &str), answer: &Answer) -> String {
    let object = format!("{} {namespace}/{name}", kind(asked));
    match answer {
        Answer::Missing => format!("There is no {object}.\n"),
        Answer::Outside(why) => format!("{object} {}.\n", outside(why)),
        Answer::Gang { kind: known_as, name: gang, account } => {
            let mut page = format!("{object} {}\n", headline(account));
            let same = *known_as == kind(asked) && *gang.1 == *name;
            if !same {
                let _ = writeln!(page, "It is decided as {known_as} {}/{}.", gang.0, gang.1);
            }
            body(&mut page, account);
            page
        }
    }
}

/// Why an object is in no gang, as the end of a sentence.
pub(super) fn outside(why: &Outside) -> String {
    match why {
        Outside::Ended => "has ended".into(),
        Outside::NotManaged => {
            "names neither a queue (label kueue.x-k8s.io/queue-name) nor a PodGroup: Soroi leaves it alone"
                .into()
        }
        Outside::GroupMissing(group) => format!("waits for PodGroup {group}, which does not exist"),
        Outside::WorkloadMissing(workload) => {
            format!("has no Workload yet: {workload} is made by a running Soroi. Is there one?")
        }
        Outside::OtherScheduler(scheduler) => {
            format!("is for the scheduler {scheduler}: Soroi leaves it alone")
        }
        Outside::Empty => "has nothing that could start yet".into(),
    }
}

fn headline(account: &Account) -> String {
    match &account.standing {
        Standing::Admitted { pods, bound } if bound >= pods => {
            format!("runs: all {pods} pods have their nodes.")
        }
        Standing::Admitted { pods, bound } => {
            format!("is admitted: {bound} of {pods} pods have their nodes.")
        }
        Standing::Waits { .. } => "waits.".into(),
    }
}

fn body(page: &mut String, account: &Account) {
    if let Standing::Waits { reason, before, .. } = &account.standing {
        if let Some(reason) = reason {
            let _ = writeln!(page, "\n  {reason}");
        }
        page.push('\n');
        queues(page, account, *before);
    }
    for set in &account.pod_sets {
        pod_set(page, set);
    }
    remedies(page, &account.remedies);
}

fn queues(page: &mut String, account: &Account, before: Option<u32>) {
    let queue = account.cluster_queue.as_ref().map(|queue| format!("ClusterQueue {queue}"));
    let volcano = account.volcano_queue.as_ref().map(|queue| format!("Volcano Queue {queue}"));
    let queues: Vec<String> = queue.into_iter().chain(volcano).collect();
    if queues.is_empty() {
        return;
    }
    let place = match before {
        None => String::new(),
        Some(0) => ", first in line".into(),
        Some(1) => ", behind 1 other".into(),
        Some(before) => format!(", behind {before} others"),
    };
    let _ = writeln!(page, "  {:<10} {}{place}", "queue", queues.join(" and "));
}

fn pod_set(page: &mut String, set: &SetAccount) {
    let each = |(resource, amount): (&Name, &Amount)| format!("{} {resource}", quantity(resource, *amount));
    let each: Vec<String> = set.requests.iter().filter(|(_, amount)| **amount > 0).map(each).collect();
    let each = if each.is_empty() { String::new() } else { format!(", each {}", each.join(", ")) };
    let _ = writeln!(page, "  {:<10} {}: {} pods{each}", "pod set", set.name, set.count);
    for flavor in &set.flavors {
        flavor_of(page, flavor);
    }
    if let Some(places) = &set.places {
        places_of(page, places);
    }
}

fn flavor_of(page: &mut String, flavor: &FlavorAccount) {
    let _ = writeln!(page, "\n  flavor {}", flavor.flavor);
    if let Some(problem) = &flavor.problem {
        let _ = writeln!(page, "    {:<8} {problem}", "out");
    }
    for quota in &flavor.quota {
        let _ = writeln!(page, "    {:<8} {}", "quota", quota_line(quota));
    }
    if let Some(places) = &flavor.places {
        places_of(page, places);
    }
}

fn quota_line(quota: &QuotaAccount) -> String {
    let amount = |amount: Amount| quantity(&quota.resource, amount);
    let borrowed = match quota.borrowed {
        0 => String::new(),
        borrowed => format!(" ({} of it borrowed)", amount(borrowed)),
    };
    let short = match quota.short {
        0 => String::new(),
        short => format!(": {} short", amount(short)),
    };
    format!(
        "{}: {} asked for, {} free{short}; the queue owns {} and uses {}{borrowed}",
        quota.resource,
        amount(quota.asked),
        amount(quota.free),
        amount(quota.nominal),
        amount(quota.used)
    )
}

fn places_of(page: &mut String, places: &PlacesAccount) {
    let row = |page: &mut String, title: &str, text: String| {
        let _ = writeln!(page, "    {title:<8} {text}");
    };
    let Some(problem) = &places.problem else {
        row(page, "room", "enough for all of these pods by themselves".into());
        return;
    };
    let takes: Vec<String> = places.takes.iter().map(|(node, pods)| format!("{node} {pods}")).collect();
    let takes = if takes.is_empty() { String::new() } else { format!(": {}", shown(&takes)) };
    let within = problem.closest.as_ref().map_or(String::new(), |domain| format!(" in {domain}"));
    row(page, "room", format!("{} of {} pods{within}{takes}", problem.fitting, problem.asked));
    if places.domains.len() > 1 {
        let domains: Vec<String> =
            places.domains.iter().map(|(name, pods)| format!("{name} {pods}")).collect();
        row(page, "domains", shown(&domains));
    }
    let mut title = "nodes";
    for (why, nodes) in &places.nodes {
        row(page, title, format!("{} {}: {}", nodes.len(), node_problem(why), shown(nodes)));
        title = "";
    }
    // Rules among pods are not found node by node.
    for (why, count) in problem.excluded.iter().filter(|(why, _)| is_among_pods(why)) {
        row(page, title, format!("{count} {}", node_problem(why)));
        title = "";
    }
    for coarser in problem.hints.coarser.iter().rev() {
        let Coarser { level, domain, fitting } = coarser;
        row(page, "coarser", format!("one domain of {level} takes {fitting}: {domain}"));
    }
    if !problem.hints.unlabelled.is_empty() {
        row(page, "labels", format!("no node has {}", shown(&problem.hints.unlabelled)));
    }
    title = "short";
    for short in places.short.iter().take(SHORT_SHOWN) {
        let lacks = short.short.iter().map(|(resource, (missing, free))| {
            format!(
                "{} more {resource} for one pod more ({} free)",
                quantity(resource, *missing),
                quantity(resource, *free)
            )
        });
        row(page, title, format!("{}: {}", short.node, lacks.collect::<Vec<_>>().join(", ")));
        title = "";
    }
    if let Some(most) = problem.fitting_if_empty.filter(|most| *most < problem.asked) {
        row(page, "never", format!("even on empty nodes only {most} would fit"));
    }
    if problem.unproven {
        row(page, "search", "cut short: not proven that there is no way".into());
    }
}

fn is_among_pods(why: &NodeProblem) -> bool {
    use NodeProblem::{ExistingAntiAffinity, PodAffinity, PodAntiAffinity, Ports, Spread, SpreadLabel};
    matches!(why, Ports | Spread | SpreadLabel | PodAffinity | PodAntiAffinity | ExistingAntiAffinity)
}

/// A taint as people write it.
fn node_problem(problem: &NodeProblem) -> String {
    match problem {
        NodeProblem::Taint { key, value } if value.is_empty() => {
            format!("node(s) had untolerated taint {key}")
        }
        NodeProblem::Taint { key, value } => format!("node(s) had untolerated taint {key}={value}"),
        other => other.to_string(),
    }
}

fn shown<T: AsRef<str>>(names: &[T]) -> String {
    let mut text = names.iter().take(NAMES_SHOWN).map(AsRef::as_ref).collect::<Vec<&str>>().join(", ");
    if names.len() > NAMES_SHOWN {
        let _ = write!(text, " and {} more", names.len() - NAMES_SHOWN);
    }
    text
}

fn remedies(page: &mut String, remedies: &[Remedy]) {
    if remedies.is_empty() {
        return;
    }
    page.push_str("\n  what would help, each by itself\n");
    for Remedy { step, enough } in remedies {
        let verdict = if *enough { "enough" } else { "not enough" };
        let _ = writeln!(page, "    {verdict:<12} {}", step_words(step));
    }
}

/// A step in words.
pub(super) fn step_words(step: &Step) -> String {
    match step {
        Step::Quota { queue, flavor, resource, more } => {
            let more = quantity(resource, *more);
            format!("{more} more {resource} of flavor {flavor} in the quota of ClusterQueue {queue}")
        }
        Step::Uncordon(node) => format!("node {node} is uncordoned"),
        Step::Ready(node) => format!("node {node} becomes ready"),
        Step::Tolerate { key, value, nodes } => {
            let taint = if value.is_empty() { key.to_string() } else { format!("{key}={value}") };
            format!("the pods tolerate the taint {taint}, or it is taken from {}", shown(nodes))
        }
        Step::Label { label, value, nodes } => {
            format!("label {label}={value} is given to {}", shown(nodes))
        }
        Step::PodLeaves { namespace, name, node } => format!("pod {namespace}/{name} leaves node {node}"),
        Step::GangEnds { namespace, name } => format!("{namespace}/{name} ends"),
        Step::All => "all of that together".into(),
    }
}
