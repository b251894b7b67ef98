//! Whom does it mean? Taints, tolerations, label selectors and node affinity in the engine's form.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    Affinity, NodeSelectorRequirement, NodeSelectorTerm as ApiTerm, Taint as ApiTaint,
    Toleration as ApiToleration,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use soroi_api::syntax::{LABEL_KEY_WORDS, LABEL_VALUE_WORDS, is_label_key, is_label_value};
use soroi_engine::event::{
    Expression, Name, NodeSelectorTerm, Operator, Selector, Taint, TaintEffect, Toleration, TolerationMatch,
};

use super::{Invalid, some_name};

/// A taint of a node or flavor.
///
/// # Errors
/// [`Invalid`] on `effect` when it is none of the three that Kubernetes knows.
pub fn taint(taint: &ApiTaint) -> Result<Taint, Invalid> {
    let effect = effect(Some(&taint.effect))?
        .ok_or_else(|| Invalid::new("effect", "must be NoSchedule, PreferNoSchedule or NoExecute"))?;
    Ok(Taint {
        key: Arc::from(taint.key.as_str()),
        value: Arc::from(taint.value.as_deref().unwrap_or_default()),
        effect,
    })
}

/// Taints, errors naming their place in the list.
///
/// # Errors
/// As [`taint`], within `spec.taints[i]` or whatever `field` is.
pub fn taints(field: &str, list: Option<&Vec<ApiTaint>>) -> Result<Vec<Taint>, Invalid> {
    let each = list.into_iter().flatten().enumerate();
    each.map(|(at, one)| taint(one).map_err(|invalid| invalid.within(&format!("{field}[{at}]")))).collect()
}

fn effect(text: Option<&String>) -> Result<Option<TaintEffect>, Invalid> {
    match text.map(String::as_str) {
        None | Some("") => Ok(None),
        Some("NoSchedule") => Ok(Some(TaintEffect::NoSchedule)),
        Some("PreferNoSchedule") => Ok(Some(TaintEffect::PreferNoSchedule)),
        Some("NoExecute") => Ok(Some(TaintEffect::NoExecute)),
        Some(other) => Err(Invalid::new("effect", format!("unknown effect \"{other}\""))),
    }
}

/// Tolerations in one canonical form, so that equal needs are equal values: sorted, and without
/// those that another one covers. (The API server drops such ones itself when it merges the
/// tolerations of a RuntimeClass; `tolerationSeconds` says how long a pod stays, never where it
/// may go, so it is not part of a shape.)
///
/// An operator that this version does not know (`Lt` and `Gt` of later ones) tolerates nothing.
///
/// # Errors
/// [`Invalid`] on `tolerations[i].effect`.
pub fn tolerations(list: Option<&Vec<ApiToleration>>) -> Result<Vec<Toleration>, Invalid> {
    let mut parsed = Vec::new();
    for (at, one) in list.into_iter().flatten().enumerate() {
        let effect = effect(one.effect.as_ref()).map_err(|e| e.within(&format!("tolerations[{at}]")))?;
        let matches = match one.operator.as_deref() {
            Some("Exists") => TolerationMatch::Exists,
            None | Some("" | "Equal") => {
                TolerationMatch::Equal(Arc::from(one.value.as_deref().unwrap_or_default()))
            }
            Some(_) => continue,
        };
        parsed.push(Toleration { key: some_name(one.key.as_ref()), matches, effect });
    }
    parsed.sort();
    parsed.dedup();
    let all = parsed.clone();
    parsed.retain(|one| !all.iter().any(|other| other != one && covers(other, one)));
    Ok(parsed)
}

/// Whether `wide` tolerates every taint that `narrow` does.
fn covers(wide: &Toleration, narrow: &Toleration) -> bool {
    let any_key = wide.key.is_none() && wide.matches == TolerationMatch::Exists;
    (any_key || wide.key == narrow.key)
        && (wide.effect.is_none() || wide.effect == narrow.effect)
        && (wide.matches == TolerationMatch::Exists || wide.matches == narrow.matches)
}

/// Required node affinity. `None`: there is none.
///
/// # Errors
/// [`Invalid`] on the expression, within `affinity.nodeAffinity.…`.
pub fn node_affinity(affinity: Option<&Affinity>) -> Result<Option<Vec<NodeSelectorTerm>>, Invalid> {
    let required = affinity
        .and_then(|affinity| affinity.node_affinity.as_ref())
        .and_then(|node| node.required_during_scheduling_ignored_during_execution.as_ref());
    let Some(required) = required else { return Ok(None) };
    let field = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    if required.node_selector_terms.is_empty() {
        return Err(Invalid::new(field, "must have at least one term"));
    }
    node_terms(&required.node_selector_terms, field).map(Some)
}

/// Terms of a node selector, of which one must match.
///
/// # Errors
/// [`Invalid`] on the expression, within `field[i]`.
pub(super) fn node_terms(terms: &[ApiTerm], field: &str) -> Result<Vec<NodeSelectorTerm>, Invalid> {
    let each = terms.iter().enumerate();
    each.map(|(at, term)| node_term(term).map_err(|e| e.within(&format!("{field}[{at}]")))).collect()
}

/// One term of a node selector.
///
/// # Errors
/// [`Invalid`] on the expression.
pub(super) fn node_term(term: &ApiTerm) -> Result<NodeSelectorTerm, Invalid> {
    type Read = fn(&str, &str, Option<&[String]>) -> Result<Expression, Invalid>;
    let list = |field: &str, list: Option<&Vec<NodeSelectorRequirement>>, read: Read| {
        let each = list.into_iter().flatten().enumerate();
        each.map(|(at, one)| {
            read(&one.key, &one.operator, one.values.as_deref())
                .map_err(|e| e.within(&format!("{field}[{at}]")))
        })
        .collect::<Result<Vec<_>, _>>()
    };
    Ok(NodeSelectorTerm {
        labels: list("matchExpressions", term.match_expressions.as_ref(), expression)?,
        fields: list("matchFields", term.match_fields.as_ref(), field_expression)?,
    })
}

/// A node selector: labels that a node must have.
///
/// # Errors
/// [`Invalid`] on `nodeSelector`: what is no label no node can have.
pub fn node_selector(labels: Option<&BTreeMap<String, String>>) -> Result<(), Invalid> {
    labels.into_iter().flatten().try_for_each(|(key, value)| {
        label(key, "nodeSelector")?;
        label_value(value, &format!("nodeSelector[{key}]"))
    })
}

fn label(key: &str, field: &str) -> Result<(), Invalid> {
    match is_label_key(key) {
        true => Ok(()),
        false => Err(Invalid::new(field, format!("\"{key}\" {LABEL_KEY_WORDS}"))),
    }
}

fn label_value(value: &str, field: &str) -> Result<(), Invalid> {
    match is_label_value(value) {
        true => Ok(()),
        false => Err(Invalid::new(field, format!("\"{value}\" {LABEL_VALUE_WORDS}"))),
    }
}

/// A label selector: `matchLabels` and `matchExpressions` together. Empty selects everything;
/// whether an absent one selects nothing is the caller's rule.
///
/// # Errors
/// [`Invalid`] on `matchLabels` or `matchExpressions[i]`, by the rules of `apimachinery`
/// (`labels.NewRequirement`).
pub fn label_selector(selector: &LabelSelector) -> Result<Selector, Invalid> {
    for (key, value) in selector.match_labels.iter().flatten() {
        label(key, "matchLabels")?;
        label_value(value, &format!("matchLabels[{key}]"))?;
    }
    let mut expressions: Selector = selector
        .match_labels
        .iter()
        .flatten()
        .map(|(key, value)| Expression {
            key: Arc::from(key.as_str()),
            op: Operator::In(vec![Arc::from(value.as_str())]),
        })
        .collect();
    for (at, one) in selector.match_expressions.iter().flatten().enumerate() {
        let parsed = match one.operator.as_str() {
            "Gt" | "Lt" => Err(Invalid::new("operator", format!("unknown operator \"{}\"", one.operator))),
            _ => expression(&one.key, &one.operator, one.values.as_deref()),
        };
        expressions.push(parsed.map_err(|e| e.within(&format!("matchExpressions[{at}]")))?);
    }
    Ok(expressions)
}

fn expression(key: &str, operator: &str, values: Option<&[String]>) -> Result<Expression, Invalid> {
    label(key, "key")?;
    let values = values.unwrap_or_default();
    for (at, value) in values.iter().enumerate() {
        label_value(value, &format!("values[{at}]"))?;
    }
    let names = || match values {
        [] => Err(Invalid::new("values", format!("must be given for operator {operator}"))),
        values => Ok(names(values)),
    };
    let none = |op| match values {
        [] => Ok(op),
        _ => Err(Invalid::new("values", format!("must not be given for operator {operator}"))),
    };
    let number = || match values {
        [one] => one
            .parse::<i64>()
            .map_err(|_| Invalid::new("values", format!("must be one whole number, is \"{one}\""))),
        _ => Err(Invalid::new("values", "must be one whole number")),
    };
    let op = match operator {
        "In" => Operator::In(names()?),
        "NotIn" => Operator::NotIn(names()?),
        "Exists" => none(Operator::Exists)?,
        "DoesNotExist" => none(Operator::DoesNotExist)?,
        "Gt" => Operator::Gt(number()?),
        "Lt" => Operator::Lt(number()?),
        other => return Err(Invalid::new("operator", format!("unknown operator \"{other}\""))),
    };
    Ok(Expression { key: Arc::from(key), op })
}

/// The same for a field of a node: its name is the only one that there is, and names are no labels.
fn field_expression(key: &str, operator: &str, values: Option<&[String]>) -> Result<Expression, Invalid> {
    if key != "metadata.name" {
        return Err(Invalid::new("key", format!("\"{key}\" must be metadata.name")));
    }
    let values = values.unwrap_or_default();
    if values.len() != 1 {
        return Err(Invalid::new("values", "must be one name"));
    }
    let op = match operator {
        "In" => Operator::In(names(values)),
        "NotIn" => Operator::NotIn(names(values)),
        other => return Err(Invalid::new("operator", format!("\"{other}\" must be In or NotIn"))),
    };
    Ok(Expression { key: Arc::from(key), op })
}

fn names(values: &[String]) -> Vec<Name> {
    values.iter().map(|value| Arc::from(value.as_str())).collect()
}

/// Whether labels match a selector (Kubernetes' semantics, `apimachinery` labels.Requirement:
/// `NotIn` and `DoesNotExist` hold where the label is missing).
pub fn matches(selector: &Selector, labels: &BTreeMap<Name, Name>) -> bool {
    selector.iter().all(|expression| {
        let value = labels.get(&expression.key);
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &expression.op {
            Operator::In(values) => value.is_some_and(|value| values.contains(value)),
            Operator::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Gt(bound) => number().is_some_and(|value| value > *bound),
            Operator::Lt(bound) => number().is_some_and(|value| value < *bound),
        }
    })
}
