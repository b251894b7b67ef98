//! How is a plan told? A table for people, JSON for programs.
//!
//! Knows words; never what they follow from.

use std::io::Write;

use serde_json::{Value, json};
use soroi_embedded::table::Table;

use super::plan::{Plan, Step};
use super::save::Folder;
use super::undo::Undone;
use crate::Output;

/// Objects that a cell names; the JSON has all.
const NAMED_MAX: usize = 3;

/// Tells what would change.
pub(super) fn plan(plan: &Plan, output: Output, out: &mut dyn Write) -> anyhow::Result<()> {
    match output {
        Output::Json => writeln!(out, "{:#}", as_json(plan))?,
        Output::Table => write!(out, "{}", as_text(plan))?,
    }
    Ok(())
}

fn as_json(plan: &Plan) -> Value {
    let steps: Vec<Value> = plan.steps.iter().map(step_json).collect();
    let unserved: Vec<Value> = plan
        .unserved
        .iter()
        .map(|one| json!({ "feature": one.feature, "instead": one.instead, "objects": one.objects }))
        .collect();
    json!({
        "possible": plan.blocked.is_empty(),
        "blocked": plan.blocked,
        "steps": steps,
        "unserved": unserved,
    })
}

fn step_json(step: &Step) -> Value {
    match step {
        Step::Remove { kind, name, why, .. } => {
            json!({ "action": "Remove", "kind": kind, "name": name, "why": why })
        }
        Step::StoreAnew { definition, version, paths } => json!({
            "action": "StoreAnew", "kind": "CustomResourceDefinition", "name": definition,
            "version": version, "objects": paths.len(),
        }),
        Step::Replace { definition, version, no_longer, converted } => json!({
            "action": "Replace", "kind": "CustomResourceDefinition", "name": definition,
            "version": version, "noLongerServed": no_longer, "conversionWebhook": converted,
        }),
        Step::LetGo { kind, place, finalizer, .. } => {
            json!({ "action": "RemoveFinalizer", "kind": kind, "name": place, "finalizer": finalizer })
        }
    }
}

fn as_text(plan: &Plan) -> String {
    let mut text = String::new();
    if !plan.steps.is_empty() {
        let mut table = Table::new(["STEP", "OBJECT", "CHANGE"]);
        for (at, step) in plan.steps.iter().enumerate() {
            let (object, change) = step_text(step);
            table.row([(at + 1).to_string(), object, change]);
        }
        text.push_str(&format!("{table}\n"));
    }
    if !plan.unserved.is_empty() {
        let mut table = Table::new(["NOT SERVED YET", "INSTEAD", "USED BY"]);
        for one in &plan.unserved {
            table.row([one.feature.clone(), one.instead.clone(), named(&one.objects)]);
        }
        text.push_str(&format!("{table}\n"));
    }
    for why in &plan.blocked {
        text.push_str(&format!("Not possible now: {why}.\n"));
    }
    text.push_str(match (plan.blocked.is_empty(), plan.unserved.is_empty()) {
        (false, _) => "",
        (true, false) => "Adoption is possible with --accept-unserved.\n",
        (true, true) if plan.steps.is_empty() => "Nothing to take over.\n",
        (true, true) => "Adoption is possible.\n",
    });
    text
}

fn step_text(step: &Step) -> (String, String) {
    match step {
        Step::Remove { kind, name, why, .. } => (format!("{kind} {name}"), format!("removed: {why}")),
        Step::StoreAnew { definition, version, paths } => {
            (definition.clone(), format!("objects stored anew as {version}: {}", paths.len()))
        }
        Step::Replace { definition, version, no_longer, converted } => {
            let mut change = format!("replaced by Soroi's, which serves {version}");
            if !no_longer.is_empty() {
                change.push_str(&format!("; {} waits for Soroi's webhooks", no_longer.join(", ")));
            }
            if *converted {
                change.push_str("; no conversion webhook");
            }
            (definition.clone(), change)
        }
        Step::LetGo { kind, place, finalizer, .. } => {
            (format!("{kind} {place}"), format!("finalizer {finalizer} is taken off"))
        }
    }
}

fn named(objects: &[String]) -> String {
    let mut text = objects.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    if let Some(more) = objects.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

/// Tells how it ended.
pub(super) fn ended(done: bool, folder: &Folder, output: Output, out: &mut dyn Write) -> anyhow::Result<()> {
    if output == Output::Table {
        match done {
            true => writeln!(
                out,
                "Done. What was there before is in {}. Start Soroi now (`soroi run`, or what `soroi \
                 manifests` prints).",
                folder.path().display()
            )?,
            false => writeln!(out, "Nothing was changed.")?,
        }
    }
    Ok(())
}

/// Tells what was put back.
pub(super) fn undone(done: &Undone, output: Output, out: &mut dyn Write) -> anyhow::Result<()> {
    match output {
        Output::Json => writeln!(out, "{:#}", json!({ "restored": done.restored, "waiting": done.waiting }))?,
        Output::Table => {
            for object in &done.restored {
                writeln!(out, "{object} restored")?;
            }
            for pod in &done.waiting {
                writeln!(out, "Pod {pod} names Soroi's scheduler and is on no node: delete it")?;
            }
            writeln!(
                out,
                "Start Kueue or Volcano now: until then their admission refuses what it is asked."
            )?;
        }
    }
    Ok(())
}
