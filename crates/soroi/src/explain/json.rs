//! An account as JSON, for programs. Field names are stable; amounts are in base units (milli-CPUs, bytes, pieces)
//! as the engine counts them.

use serde_json::{Map, Value, json};
use soroi_control::snapshot::{Answer, Asked};
use soroi_engine::account::{Account, FlavorAccount, PlacesAccount, Remedy, SetAccount, Standing, Step};

use super::text;

pub(super) fn page(asked: Asked, (namespace, name): (&str, &str), answer: &Answer) -> anyhow::Result<String> {
    let mut page = json!({"kind": text::kind(asked), "namespace": namespace, "name": name});
    match answer {
        Answer::Missing => page["state"] = json!("Missing"),
        Answer::Outside(why) => {
            page["state"] = json!("Outside");
            page["message"] = json!(text::outside(why));
        }
        Answer::Gang { kind, name: (namespace, name), account } => {
            page["gang"] = json!({"kind": kind, "namespace": &**namespace, "name": &**name});
            standing(&mut page, account);
            page["podSets"] = account.pod_sets.iter().map(pod_set).collect();
            page["remedies"] = account.remedies.iter().map(remedy).collect();
        }
    }
    Ok(serde_json::to_string_pretty(&page)? + "\n")
}

fn standing(page: &mut Value, account: &Account) {
    match &account.standing {
        Standing::Waits { reason, before, .. } => {
            page["state"] = json!("Waiting");
            page["message"] = json!(reason.as_ref().map(ToString::to_string));
            page["before"] = json!(before);
        }
        Standing::Admitted { pods, bound } => {
            page["state"] = json!("Admitted");
            page["pods"] = json!(pods);
            page["bound"] = json!(bound);
        }
    }
    page["clusterQueue"] = json!(account.cluster_queue.as_deref());
    page["volcanoQueue"] = json!(account.volcano_queue.as_deref());
}

fn pod_set(set: &SetAccount) -> Value {
    json!({
        "name": &*set.name,
        "count": set.count,
        "requests": set.requests.iter().map(|(name, amount)| (name.to_string(), json!(amount))).collect::<Map<_, _>>(),
        "flavors": set.flavors.iter().map(flavor).collect::<Vec<_>>(),
        "places": set.places.as_ref().map(places),
    })
}

fn flavor(flavor: &FlavorAccount) -> Value {
    let quota = flavor.quota.iter().map(|quota| {
        json!({
            "resource": &*quota.resource, "asked": quota.asked, "nominal": quota.nominal, "used": quota.used,
            "borrowed": quota.borrowed, "free": quota.free, "short": quota.short,
        })
    });
    json!({
        "flavor": &*flavor.flavor,
        "problem": flavor.problem.as_ref().map(ToString::to_string),
        "quota": quota.collect::<Vec<_>>(),
        "places": flavor.places.as_ref().map(places),
    })
}

fn places(places: &PlacesAccount) -> Value {
    let names =
        |nodes: &[soroi_engine::event::Name]| nodes.iter().map(|node| json!(&**node)).collect::<Value>();
    let excluded =
        places.nodes.iter().map(|(why, nodes)| json!({"reason": why.to_string(), "nodes": names(nodes)}));
    let short = places.short.iter().map(|short| {
        let lacks = short.short.iter().map(
            |(resource, (missing, free))| json!({"resource": &**resource, "missing": missing, "free": free}),
        );
        json!({"node": &*short.node, "resources": lacks.collect::<Vec<_>>()})
    });
    let counted = |all: &[(soroi_engine::event::Name, u32)], what: &str| {
        all.iter().map(|(name, pods)| json!({what: &**name, "pods": pods})).collect::<Value>()
    };
    let problem = places.problem.as_ref();
    json!({
        "fits": problem.is_none(),
        "asked": problem.map(|problem| problem.asked),
        "fitting": problem.map(|problem| problem.fitting),
        "closestDomain": problem.and_then(|problem| problem.closest.as_deref()),
        "labelsOfNoNode": problem.map(|problem| names(&problem.hints.unlabelled)),
        "fittingOnEmptyNodes": problem.and_then(|problem| problem.fitting_if_empty),
        "message": problem.map(ToString::to_string),
        "proven": problem.map(|problem| !problem.unproven),
        "takes": counted(&places.takes, "node"),
        "domains": counted(&places.domains, "domain"),
        "excluded": excluded.collect::<Vec<_>>(),
        "short": short.collect::<Vec<_>>(),
    })
}

fn remedy(remedy: &Remedy) -> Value {
    let kind = match &remedy.step {
        Step::Quota { .. } => "Quota",
        Step::Uncordon(_) => "Uncordon",
        Step::Ready(_) => "NodeReady",
        Step::Tolerate { .. } => "Tolerate",
        Step::Label { .. } => "Label",
        Step::PodLeaves { .. } => "PodLeaves",
        Step::GangEnds { .. } => "GangEnds",
        Step::All => "All",
    };
    json!({"step": kind, "message": text::step_words(&remedy.step), "enough": remedy.enough})
}
