//! What does a user see? Views of a world as tables, in columns that the story chooses.
//!
//! Names that the API generates are shown as `train-*`, namespaces only when they are not the
//! default one, nothing as `-`; rows are in the order of their text. So a table says the same in
//! every run of a story. Knows the world and text; changes nothing.

use std::collections::BTreeMap;

use serde_json::Value;
use soroi_embedded::table::Table;

use crate::kind::{self, Kind};
use crate::scenario::{DEFAULT_NAMESPACE, GangRef, Look, OWN_PREFIX, View};
use crate::world::{Amounts, GangView, State, World, amounts, condition, is_true, pod_requests};

/// A row: cells by column name.
type Row = BTreeMap<&'static str, String>;

/// Draws what `look` sees, in the columns that `header` names.
///
/// # Errors
/// The column that the view does not have, with those that it has.
pub fn draw(world: &World, look: &Look, header: &str) -> Result<Vec<String>, String> {
    let columns: Vec<&str> = header.split("  ").map(str::trim).filter(|name| !name.is_empty()).collect();
    let known = columns_of(look.view);
    if let Some(unknown) = columns.iter().find(|column| !known.contains(column)) {
        return Err(format!("there is no column {unknown}; there are {}", known.join(", ")));
    }
    let mut table = Table::new(columns.iter().copied());
    let mut rows: Vec<Vec<String>> = rows(world, look)
        .into_iter()
        .map(|row| columns.iter().map(|column| cell(&row, column)).collect())
        .collect();
    rows.sort();
    for row in rows {
        table.row(row);
    }
    Ok(table.to_string().lines().map(str::to_owned).collect())
}

fn cell(row: &Row, column: &str) -> String {
    row.get(column).filter(|cell| !cell.is_empty()).cloned().unwrap_or_else(|| "-".to_owned())
}

fn columns_of(view: View) -> &'static [&'static str] {
    match view {
        View::Gangs => &["GANG", "STATE", "BOUND", "RUNNING", "DONE", "NODES", "FLAVORS", "EVICTIONS", "WHY"],
        View::Pods => &["NAME", "STATUS", "NODE", "GANG", "SCHEDULER", "REASON", "GATES", "CONTAINERS"],
        View::Jobs => &["NAME", "STATUS", "ACTIVE", "SUCCEEDED", "FAILED", "REASON"],
        View::Groups => &["NAME", "PHASE", "MIN", "RUNNING", "SUCCEEDED", "FAILED", "REASON", "MESSAGE"],
        View::Nodes => &["NAME", "STATUS", "GPU", "CPU", "PODS"],
        View::Queues | View::LocalQueues => {
            &["NAME", "ACTIVE", "PENDING", "RESERVING", "ADMITTED", "USAGE", "RESERVED", "BORROWED", "WHY"]
        }
        View::Workloads => &[
            "NAME",
            "QUEUE",
            "RESERVED IN",
            "ADMITTED",
            "FINISHED",
            "PODS READY",
            "EVICTED",
            "REQUEUED",
            "PUT BACK",
            "ACTIVE",
            "REASON",
            "MESSAGE",
        ],
        View::Plans => &["GANG", "PHASE", "POLICY", "QUEUE", "PODS"],
        View::Events => &["OBJECT", "TYPE", "REASON", "COUNT", "MESSAGE"],
    }
}

fn rows(world: &World, look: &Look) -> Vec<Row> {
    let rows: Vec<(String, Row)> = match look.view {
        View::Gangs => world.gangs().iter().map(|view| gang_row(world, view)).collect(),
        View::Pods => pods(world, look.gang.as_ref()).into_iter().map(pod_row).collect(),
        View::Jobs => world.all(kind::JOB).map(job_row).collect(),
        View::Groups => world.all(kind::POD_GROUP).map(group_row).collect(),
        View::Nodes => world.all(kind::NODE).map(|node| node_row(world, node)).collect(),
        View::Queues => world.all(kind::CLUSTER_QUEUE).map(queue_row).collect(),
        View::LocalQueues => world.all(kind::LOCAL_QUEUE).map(queue_row).collect(),
        View::Workloads => world.all(kind::WORKLOAD).map(workload_row).collect(),
        View::Plans => world.all(kind::GANG_PLAN).map(plan_row).collect(),
        View::Events => world.all(kind::EVENT).map(|event| event_row(world, event)).collect(),
    };
    let wanted = |name: &String| {
        let named = look.names.is_empty() || look.names.contains(name);
        let of_gang =
            look.gang.as_ref().is_none_or(|gang| look.view == View::Pods || name.contains(&gang.name));
        named && of_gang
    };
    rows.into_iter().filter(|(name, _)| wanted(name)).map(|(_, row)| row).collect()
}

fn pods<'a>(world: &'a World, gang: Option<&GangRef>) -> Vec<&'a Value> {
    match gang {
        Some(gang) => world.gang(gang).pods,
        None => world.all(kind::POD).collect(),
    }
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| if value.is_null() { String::new() } else { value.to_string() }, str::to_owned)
}

fn number(value: &Value) -> String {
    value.as_u64().unwrap_or(0).to_string()
}

/// `name`, or `namespace/name` outside the default namespace.
fn shown(namespace: &str, name: &str) -> String {
    if namespace.is_empty() || namespace == DEFAULT_NAMESPACE {
        name.to_owned()
    } else {
        format!("{namespace}/{name}")
    }
}

/// An object's name with the part that the API generated as `*`.
fn name_of(object: &Value) -> String {
    let metadata = &object["metadata"];
    let stem = metadata["generateName"].as_str().map(|stem| format!("{stem}*"));
    // A Workload's name ends with a hash of its owner's uid.
    let hashed = || {
        let owners = metadata["ownerReferences"].as_array().filter(|_| object["kind"] == "Workload")?;
        let name = metadata["name"].as_str().filter(|_| !owners.is_empty())?;
        Some(format!("{}-*", name.rsplit_once('-')?.0))
    };
    let name = stem.or_else(hashed).unwrap_or_else(|| text(&metadata["name"]));
    shown(metadata["namespace"].as_str().unwrap_or(""), &name)
}

/// A resource name as stories write it.
fn short(resource: &str) -> &str {
    resource.strip_prefix(OWN_PREFIX).unwrap_or(resource)
}

fn counted<'a>(names: impl IntoIterator<Item = (&'a str, usize)>) -> String {
    let words = names
        .into_iter()
        .map(|(name, count)| if count == 1 { name.to_owned() } else { format!("{name}:{count}") });
    words.collect::<Vec<_>>().join(" ")
}

fn gang_row(world: &World, view: &GangView<'_>) -> (String, Row) {
    let name = shown(&view.gang.namespace, &view.gang.name);
    let waits =
        matches!(view.state(), State::Pending | State::Reserved) || view.bound().len() < view.minimum();
    let row = Row::from([
        ("GANG", name.clone()),
        ("STATE", view.state().name().to_owned()),
        ("BOUND", format!("{}/{}", view.bound().len(), view.minimum())),
        ("RUNNING", view.in_phase("Running").to_string()),
        ("DONE", view.succeeded().to_string()),
        ("NODES", counted(view.nodes())),
        ("FLAVORS", flavors(view)),
        ("EVICTIONS", world.evictions(&view.gang).to_string()),
        ("WHY", if waits { view.why().unwrap_or("").to_owned() } else { String::new() }),
    ]);
    (name, row)
}

fn flavors(view: &GangView<'_>) -> String {
    let mut names: Vec<String> = view
        .workloads
        .iter()
        .flat_map(|workload| {
            workload["status"]["admission"]["podSetAssignments"].as_array().into_iter().flatten()
        })
        .flat_map(|assignment| assignment["flavors"].as_object().into_iter().flatten())
        .map(|(_, flavor)| text(flavor))
        .collect();
    names.sort();
    names.dedup();
    names.join(" ")
}

fn pod_row(pod: &Value) -> (String, Row) {
    let terminating = !pod["metadata"]["deletionTimestamp"].is_null();
    let gates = pod["spec"]["schedulingGates"].as_array().into_iter().flatten();
    let gates: Vec<String> = gates.map(|gate| text(&gate["name"])).collect();
    let scheduled = condition(pod, "PodScheduled").cloned().unwrap_or(Value::Null);
    let reason = match pod["status"]["reason"].as_str() {
        Some(reason) => reason.to_owned(),
        None if scheduled["status"] == "False" => text(&scheduled["message"]),
        None => String::new(),
    };
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let row = Row::from([
        ("NAME", name_of(pod)),
        ("STATUS", if terminating { "Terminating".to_owned() } else { text(&pod["status"]["phase"]) }),
        ("NODE", text(&pod["spec"]["nodeName"])),
        ("GANG", text(&pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"])),
        ("SCHEDULER", text(&pod["spec"]["schedulerName"])),
        ("REASON", reason),
        ("GATES", gates.join(" ")),
        ("CONTAINERS", containers.map(|container| text(&container["name"])).collect::<Vec<_>>().join(" ")),
    ]);
    (name_of(pod), row)
}

fn job_row(job: &Value) -> (String, Row) {
    let status = ["Complete", "Failed"].into_iter().find(|kind| is_true(job, kind));
    let suspended = job["spec"]["suspend"] == true;
    let failed = condition(job, "Failed").map(|condition| text(&condition["reason"])).unwrap_or_default();
    let row = Row::from([
        ("NAME", name_of(job)),
        ("STATUS", status.unwrap_or(if suspended { "Suspended" } else { "Running" }).to_owned()),
        ("ACTIVE", number(&job["status"]["active"])),
        ("SUCCEEDED", number(&job["status"]["succeeded"])),
        ("FAILED", number(&job["status"]["failed"])),
        ("REASON", failed),
    ]);
    (name_of(job), row)
}

fn group_row(group: &Value) -> (String, Row) {
    let status = &group["status"];
    let conditions = status["conditions"].as_array();
    let last = conditions.and_then(|list| list.iter().rev().find(|one| one["status"] == "True"));
    let last = last.cloned().unwrap_or(Value::Null);
    let row = Row::from([
        ("NAME", name_of(group)),
        ("PHASE", text(&status["phase"])),
        ("MIN", number(&group["spec"]["minMember"])),
        ("RUNNING", number(&status["running"])),
        ("SUCCEEDED", number(&status["succeeded"])),
        ("FAILED", number(&status["failed"])),
        ("REASON", text(&last["reason"])),
        ("MESSAGE", text(&last["message"])),
    ]);
    (name_of(group), row)
}

fn node_row(world: &World, node: &Value) -> (String, Row) {
    let name = text(&node["metadata"]["name"]);
    let here: Vec<&Value> = world
        .all(kind::POD)
        .filter(|pod| pod["spec"]["nodeName"] == name.as_str())
        .filter(|pod| !matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed")))
        .collect();
    let mut used = Amounts::new();
    for pod in &here {
        for (resource, amount) in pod_requests(pod) {
            *used.entry(resource).or_insert(0) += amount;
        }
    }
    let room = amounts(&node["status"]["allocatable"]);
    let share = |resource: &str| {
        let (used, room) =
            (used.get(resource).copied().unwrap_or(0), room.get(resource).copied().unwrap_or(0));
        if room == 0 { String::new() } else { format!("{used}/{room}") }
    };
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for pod in &here {
        *names.entry(name_of(pod)).or_insert(0) += 1;
    }
    let row = Row::from([
        ("NAME", name.clone()),
        ("STATUS", node_status(node)),
        ("GPU", share("example.com/gpu")),
        ("CPU", share("cpu")),
        ("PODS", counted(names.iter().map(|(name, count)| (name.as_str(), *count)))),
    ]);
    (name, row)
}

fn node_status(node: &Value) -> String {
    let ready = if is_true(node, "Ready") { "Ready" } else { "NotReady" };
    let cordoned = if node["spec"]["unschedulable"] == true { ",SchedulingDisabled" } else { "" };
    format!("{ready}{cordoned}")
}

/// A ClusterQueue or LocalQueue.
fn queue_row(queue: &Value) -> (String, Row) {
    let status = &queue["status"];
    let active = condition(queue, "Active");
    let inactive = active.filter(|condition| condition["status"] != "True");
    let reservation =
        if status["flavorsReservation"].is_null() { "flavorsReserved" } else { "flavorsReservation" };
    let row = Row::from([
        ("NAME", name_of(queue)),
        ("ACTIVE", active.map(|condition| text(&condition["status"])).unwrap_or_default()),
        ("PENDING", number(&status["pendingWorkloads"])),
        ("RESERVING", number(&status["reservingWorkloads"])),
        ("ADMITTED", number(&status["admittedWorkloads"])),
        ("USAGE", usage(&status["flavorsUsage"], "total")),
        ("RESERVED", usage(&status[reservation], "total")),
        ("BORROWED", usage(&status["flavorsUsage"], "borrowed")),
        (
            "WHY",
            inactive
                .map(|found| format!("{}: {}", text(&found["reason"]), text(&found["message"])))
                .unwrap_or_default(),
        ),
    ]);
    (name_of(queue), row)
}

/// `gpu=4`, or `spot/gpu=4` for flavors that are not the only one; nothing for zero.
fn usage(flavors: &Value, field: &str) -> String {
    let flavors = flavors.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut words = Vec::new();
    for flavor in flavors {
        for resource in flavor["resources"].as_array().into_iter().flatten() {
            let amount = text(&resource[field]);
            if amount.is_empty() || amount == "0" {
                continue;
            }
            let name = text(&resource["name"]);
            let stem = if flavors.len() > 1 { format!("{}/", text(&flavor["name"])) } else { String::new() };
            words.push(format!("{stem}{}={amount}", short(&name)));
        }
    }
    words.join(" ")
}

fn workload_row(workload: &Value) -> (String, Row) {
    let state =
        |kind: &str| condition(workload, kind).map(|found| text(&found["status"])).unwrap_or_default();
    let told = ["Finished", "Evicted", "QuotaReserved"]
        .into_iter()
        .find_map(|kind| condition(workload, kind))
        .cloned()
        .unwrap_or(Value::Null);
    let row = Row::from([
        ("NAME", name_of(workload)),
        ("QUEUE", text(&workload["spec"]["queueName"])),
        ("RESERVED IN", text(&workload["status"]["admission"]["clusterQueue"])),
        ("ADMITTED", state("Admitted")),
        ("FINISHED", state("Finished")),
        (
            "PODS READY",
            condition(workload, "PodsReady").map(|found| text(&found["reason"])).unwrap_or_default(),
        ),
        ("EVICTED", state("Evicted")),
        ("REQUEUED", condition(workload, "Requeued").map(|found| text(&found["reason"])).unwrap_or_default()),
        ("PUT BACK", number(&workload["status"]["requeueState"]["count"])),
        ("ACTIVE", if workload["spec"]["active"] == false { "False" } else { "True" }.to_owned()),
        ("REASON", text(&told["reason"])),
        ("MESSAGE", text(&told["message"])),
    ]);
    (name_of(workload), row)
}

fn plan_row(plan: &Value) -> (String, Row) {
    let gang = &plan["spec"]["gang"];
    let name = text(&gang["name"]);
    // A Workload's name ends with a hash of its owner's uid.
    let name = match name.rsplit_once('-') {
        Some((stem, _)) if gang["kind"] == "Workload" => format!("{stem}-*"),
        _ => name,
    };
    let name = shown(gang["namespace"].as_str().unwrap_or(""), &name);
    let row = Row::from([
        ("GANG", name.clone()),
        ("PHASE", text(&plan["status"]["phase"])),
        ("POLICY", text(&plan["spec"]["policy"])),
        ("QUEUE", text(&plan["spec"]["clusterQueue"])),
        ("PODS", number(&plan["spec"]["pods"])),
    ]);
    (name, row)
}

fn event_row(world: &World, event: &Value) -> (String, Row) {
    let about = &event["involvedObject"];
    let (namespace, name) = (text(&about["namespace"]), text(&about["name"]));
    let word = text(&about["kind"]).to_ascii_lowercase();
    let known = Kind::of_word(&word).and_then(|kind| world.get(kind, &namespace, &name));
    let object = format!("{word}/{}", known.map_or_else(|| shown(&namespace, &name), name_of));
    let count = event["count"].as_u64().or_else(|| event["series"]["count"].as_u64()).unwrap_or(1);
    let row = Row::from([
        ("OBJECT", object.clone()),
        ("TYPE", text(&event["type"])),
        ("REASON", text(&event["reason"])),
        ("COUNT", count.to_string()),
        ("MESSAGE", text(&event["message"])),
    ]);
    (object, row)
}

/// Whether the lines that were seen are those that were expected: blanks between cells do not
/// count, and `…` stands for anything.
pub fn matches(expected: &[String], seen: &[String]) -> bool {
    expected.len() == seen.len()
        && expected.iter().zip(seen).all(|(expected, seen)| line_matches(expected, seen))
}

/// [`matches()`] for one line.
pub fn line_matches(expected: &str, seen: &str) -> bool {
    let squeeze = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let (expected, seen) = (squeeze(expected), squeeze(seen));
    let mut parts = expected.split('…');
    let Some(mut rest) = seen.strip_prefix(parts.next().unwrap_or("")) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use jiff::Timestamp;
    use serde_json::json;
    use soroi_watch::Change;

    #[test]
    fn dots_stand_for_anything() {
        assert!(line_matches("a   b…  d", "a b c d"));
        assert!(line_matches("a …", "a b c"));
        assert!(line_matches("…", ""));
        assert!(!line_matches("a b", "a b c"));
        assert!(!line_matches("a … d", "a b c"));
    }

    fn world() -> World {
        let mut world = World::new(Timestamp::UNIX_EPOCH);
        let mut set = |kind, object| {
            world.change(kind, Change::Set(object), Timestamp::UNIX_EPOCH);
        };
        set(
            kind::NODE,
            json!({"kind": "Node", "metadata": {"name": "w1"}, "status": {
            "allocatable": {"example.com/gpu": "2", "cpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]}}),
        );
        set(
            kind::JOB,
            json!({"kind": "Job", "metadata": {"name": "train", "namespace": "default",
            "labels": {"kueue.x-k8s.io/queue-name": "main"}}, "spec": {"parallelism": 2, "completions": 2}}),
        );
        set(
            kind::WORKLOAD,
            json!({"kind": "Workload", "metadata": {"name": "job-train-1a2b3", "namespace": "default",
            "ownerReferences": [{"kind": "Job", "name": "train"}]}, "status": {"conditions": [
            {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "no room"}]}}),
        );
        let pod = |name: &str, node: Option<&str>| {
            json!({"kind": "Pod", "metadata": {"name": name, "namespace": "default",
            "generateName": "train-", "ownerReferences": [{"kind": "Job", "name": "train"}]},
            "spec": {"nodeName": node, "containers": [{"name": "main", "resources": {"requests": {"example.com/gpu": "1"}}}]},
            "status": {"phase": "Pending"}})
        };
        set(kind::POD, pod("train-aaaaa", Some("w1")));
        set(kind::POD, pod("train-bbbbb", None));
        world
    }

    #[test]
    fn a_view_shows_the_columns_that_were_asked_for() {
        let world = world();
        let draw = |view, header| {
            let look = Look { view, gang: None, names: Vec::new() };
            super::draw(&world, &look, header).map_or_else(|error| error, |lines| lines.join("\n"))
        };
        expect![[r#"
            GANG    STATE     BOUND   NODES   WHY
            train   Pending   1/2     w1      no room"#]]
        .assert_eq(&draw(View::Gangs, "GANG  STATE  BOUND  NODES  WHY"));
        expect![[r#"
            NAME      STATUS    NODE
            train-*   Pending   -
            train-*   Pending   w1"#]]
        .assert_eq(&draw(View::Pods, "NAME  STATUS  NODE"));
        expect![[r#"
            NAME   STATUS   GPU   PODS
            w1     Ready    1/2   train-*"#]]
        .assert_eq(&draw(View::Nodes, "NAME  STATUS  GPU  PODS"));
        expect![[r#"
            NAME          RESERVED IN   MESSAGE
            job-train-*   -             no room"#]]
        .assert_eq(&draw(View::Workloads, "NAME  RESERVED IN  MESSAGE"));
        expect!["there is no column AGE; there are NAME, STATUS, ACTIVE, SUCCEEDED, FAILED, REASON"]
            .assert_eq(&draw(View::Jobs, "NAME  AGE"));
    }
}
