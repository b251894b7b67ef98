//! What does a console line do?
//!
//! The verbs are kubectl's where kubectl has one. Knows the words; never a client.

use serde_json::{Value, json};

use super::words::{Words, full_name, label_name, resource_name, span};
use super::{
    Action, Clause, Compare, Condition, GangRef, Look, Measure, ParseError, Pods, Ref, View, build, page,
};
use crate::kind::{self, Kind};

/// Annotation that tells the simulated kubelet of a node how it is.
const KUBELET: &str = "soroi.dev/kubelet";

/// Parses one line after its `$ `. `files` are the YAML blocks of the page that have a name.
pub(crate) fn parse(line: usize, text: &str, files: &page::Files) -> Result<Action, ParseError> {
    let mut words = Words::split(line, text);
    let verb = words.next("a verb")?;
    if let Some(manifests) = build::manifests(&verb, &mut words) {
        let manifests = manifests?;
        words.end()?;
        return Ok(Action::Apply(manifests));
    }
    let action = match verb.as_str() {
        "apply" => apply(&mut words, files)?,
        "delete" => delete(&mut words)?,
        "orphan" => Action::Orphan(named(&mut words)?),
        "evict" => Action::Evict(pods(&mut words)?),
        "release" => Action::Release(pods(&mut words)?),
        // The rest of these lines is YAML or an expression, not words.
        "patch" => return patch(line, text),
        "forbid" => return Ok(Action::Forbid(condition(line, text)?)),
        "allow" => return Ok(Action::Allow(condition(line, text)?)),
        "label" => label(&mut words)?,
        "cordon" | "uncordon" => {
            let target = one_ref(kind::NODE, &words.next("the node")?);
            let patch = json!({"spec": {"unschedulable": (verb == "cordon").then_some(true)}});
            Action::Patch { target, subresource: None, patch }
        }
        "taint" => taint(&mut words)?,
        "phase" => {
            let phase = words.next("the phase")?;
            Action::Phase { pods: pods(&mut words)?, phase }
        }
        "kubelet" => {
            let target = one_ref(kind::NODE, &words.next("the node")?);
            let how = words.next("`alive`, `unreachable` or `dead`")?;
            let patch = json!({"metadata": {"annotations": {KUBELET: how}}});
            Action::Patch { target, subresource: None, patch }
        }
        "wait" => {
            let text = words.next("a span of time")?;
            Action::Wait(span(&text).ok_or_else(|| words.error(format!("`{text}` is no span of time")))?)
        }
        "product" => product(&mut words)?,
        "lull" => Action::Lull { begins: true },
        "storm" => Action::Lull { begins: false },
        "refuse" => refuse(&mut words)?,
        "get" => get(&mut words)?,
        _ => return Err(words.error(format!("unknown verb `{verb}`"))),
    };
    words.end()?;
    Ok(action)
}

/// `product start`, `product stop`, or `product sleep SPAN [suspended]`.
fn product(words: &mut Words) -> Result<Action, ParseError> {
    match words.next("`start`, `stop` or `sleep`")?.as_str() {
        "start" => Ok(Action::Product { runs: true }),
        "stop" => Ok(Action::Product { runs: false }),
        "sleep" => {
            let text = words.next("a span of time")?;
            let span = span(&text).ok_or_else(|| words.error(format!("`{text}` is no span of time")))?;
            Ok(Action::Sleep { span, suspended: words.flag("suspended") })
        }
        other => Err(words.error(format!("`start`, `stop` or `sleep`, not `{other}`"))),
    }
}

/// `refuse pods 1/N`, or `refuse pods none`.
fn refuse(words: &mut Words) -> Result<Action, ParseError> {
    let what = words.next("`pods`")?;
    if what != "pods" {
        return Err(words.error(format!("`pods`, not `{what}`")));
    }
    let share = words.next("`1/N` or `none`")?;
    let one_in = match share.strip_prefix("1/").map(str::parse) {
        Some(Ok(number)) if number > 0 => Some(number),
        _ if share == "none" => None,
        _ => return Err(words.error(format!("`1/N` or `none`, not `{share}`"))),
    };
    Ok(Action::Refuse { one_in })
}

fn apply(words: &mut Words, files: &page::Files) -> Result<Action, ParseError> {
    let mut manifests = Vec::new();
    for name in words.rest() {
        let file =
            files.get(&name).ok_or_else(|| words.error(format!("no block above is called `{name}`")))?;
        manifests.extend(file.iter().cloned());
    }
    if manifests.is_empty() {
        return Err(words.error("the name of a YAML block is missing"));
    }
    Ok(Action::Apply(manifests))
}

fn one_ref(kind: Kind, text: &str) -> Ref {
    let (namespace, name) = if kind.namespaced { full_name(text) } else { (String::new(), text.to_owned()) };
    Ref { kind, namespace, name }
}

fn kind_word(words: &mut Words) -> Result<Kind, ParseError> {
    let word = words.next("the kind")?;
    Kind::of_word(&word).ok_or_else(|| words.error(format!("unknown kind `{word}`")))
}

fn delete(words: &mut Words) -> Result<Action, ParseError> {
    if matches!(words.bare.get(1).map(String::as_str), Some("pod" | "pods")) {
        return Ok(Action::DeletePods(pods(words)?));
    }
    Ok(Action::Delete(named(words)?))
}

/// `KIND NAME…`
fn named(words: &mut Words) -> Result<Vec<Ref>, ParseError> {
    let kind = kind_word(words)?;
    let refs: Vec<Ref> = words.rest().iter().map(|name| one_ref(kind, name)).collect();
    if refs.is_empty() {
        return Err(words.error(format!("the name of the {} is missing", kind.word)));
    }
    Ok(refs)
}

/// `pod NAME…`, or `pod|pods of GANG [on NODE] [index=N]`.
fn pods(words: &mut Words) -> Result<Pods, ParseError> {
    let all = match words.next("`pod` or `pods`")?.as_str() {
        "pod" => false,
        "pods" => true,
        other => return Err(words.error(format!("`pod` or `pods`, not `{other}`"))),
    };
    let index = words.number("index")?.and_then(|index| u32::try_from(index).ok());
    if words.flag("of") {
        let gang = gang(&words.next("the gang")?);
        let node = if words.flag("on") { Some(words.next("the node")?) } else { None };
        return Ok(Pods::Of { gang, node, index, all });
    }
    let names: Vec<_> = words.rest().iter().map(|name| full_name(name)).collect();
    if names.is_empty() { Err(words.error("the pod's name is missing")) } else { Ok(Pods::Named(names)) }
}

fn gang(text: &str) -> GangRef {
    let (namespace, name) = full_name(text);
    GangRef { namespace, name }
}

/// `patch KIND NAME [status|scale] {yaml: flow}`, or `patch workload of GANG [status] {yaml: flow}`.
fn patch(line: usize, text: &str) -> Result<Action, ParseError> {
    let (head, body) = match text.find('{') {
        Some(start) => text.split_at(start),
        None => return Err(ParseError { line, text: "the patch (`{…}`) is missing".into() }),
    };
    let mut words = Words::split(line, head);
    words.next("patch")?;
    let kind = kind_word(&mut words)?;
    let documents = page::yaml(line, body)?;
    let patch = documents.into_iter().next().ok_or_else(|| words.error("the patch is empty"))?;
    if kind == kind::WORKLOAD && words.flag("of") {
        let gang = gang(&words.next("the gang")?);
        let subresource = words.maybe();
        words.end()?;
        return Ok(Action::PatchWorkload { gang, subresource, patch });
    }
    let target = one_ref(kind, &words.next("the object's name")?);
    let subresource = words.maybe();
    words.end()?;
    Ok(Action::Patch { target, subresource, patch })
}

/// `label KIND NAME key=value… key-…`.
fn label(words: &mut Words) -> Result<Action, ParseError> {
    let kind = kind_word(words)?;
    let target = one_ref(kind, &words.next("the object's name")?);
    let mut labels = serde_json::Map::new();
    for (key, value) in std::mem::take(&mut words.options) {
        labels.insert(label_name(&key), json!(value));
    }
    for word in words.rest() {
        match word.strip_suffix('-') {
            Some(key) => labels.insert(label_name(key), Value::Null),
            None => return Err(words.error(format!("`{word}`: `key=value`, or `key-` to take it away"))),
        };
    }
    Ok(Action::Patch { target, subresource: None, patch: json!({"metadata": {"labels": labels}}) })
}

/// `taint NODE key=value:Effect`, or `taint NODE key-`.
fn taint(words: &mut Words) -> Result<Action, ParseError> {
    let node = words.next("the node")?;
    if let Some((key, rest)) = words.options.pop_first() {
        let (value, effect) = rest.rsplit_once(':').ok_or_else(|| {
            words.error(format!("{key}={rest}: the effect is missing (`value:NoSchedule`)"))
        })?;
        return Ok(Action::Taint { node, key, value: value.to_owned(), effect: Some(effect.to_owned()) });
    }
    let word = words.next("the taint")?;
    match word.strip_suffix('-') {
        Some(key) => Ok(Action::Taint { node, key: key.to_owned(), value: String::new(), effect: None }),
        None => Err(words.error(format!("`{word}`: `key=value:Effect`, or `key-` to take it away"))),
    }
}

fn get(words: &mut Words) -> Result<Action, ParseError> {
    let word = words.next("what to look at")?;
    let view = match word.as_str() {
        "gangs" => View::Gangs,
        "pods" => View::Pods,
        "jobs" => View::Jobs,
        "groups" => View::Groups,
        "nodes" => View::Nodes,
        "queues" => View::Queues,
        "localqueues" => View::LocalQueues,
        "workloads" => View::Workloads,
        "plans" => View::Plans,
        "events" => View::Events,
        _ => return Err(words.error(format!("`{word}` is nothing that can be looked at"))),
    };
    let of = if words.flag("of") { Some(gang(&words.next("the gang")?)) } else { None };
    Ok(Action::Get(Look { view, gang: of, names: words.rest() }))
}

/// `MEASURE < NUMBER and …` after the verb.
fn condition(line: usize, text: &str) -> Result<Condition, ParseError> {
    let text = text.split_once(' ').map_or("", |(_, rest)| rest.trim());
    let clauses = text.split(" and ").map(|part| clause(line, part.trim())).collect::<Result<Vec<_>, _>>()?;
    Ok(Condition { text: text.to_owned(), clauses })
}

fn clause(line: usize, text: &str) -> Result<Clause, ParseError> {
    let fault = |what: &str| ParseError { line, text: format!("`{text}`: {what}") };
    let words: Vec<&str> = text.split_whitespace().collect();
    let (measure, compare, bound) = match words.as_slice() {
        ["usage", queue, resource, compare, bound] => {
            let measure = Measure::Usage { queue: (*queue).to_owned(), resource: resource_name(resource) };
            (measure, *compare, *bound)
        }
        [what, name, compare, bound] => {
            let gang = gang(name);
            let measure = match *what {
                "bound" => Measure::Bound(gang),
                "pods" => Measure::Pods(gang),
                "terminating" => Measure::Terminating(gang),
                "failed" => Measure::Failed(gang),
                "evictions" => Measure::Evictions(gang),
                _ => return Err(fault("nothing that can be measured")),
            };
            (measure, *compare, *bound)
        }
        _ => return Err(fault("`MEASURE NAME < NUMBER`")),
    };
    let compare = match compare {
        "<" => Compare::Less,
        "=" => Compare::Equal,
        ">" => Compare::More,
        _ => return Err(fault("`<`, `=` or `>`")),
    };
    let bound = bound.parse().map_err(|_| fault("the number is no whole number"))?;
    Ok(Clause { measure, compare, bound })
}
