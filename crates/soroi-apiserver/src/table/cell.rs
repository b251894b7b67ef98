//! How is a value written in a cell? The forms that Kubernetes' printers share.
//!
//! Follows Kubernetes 1.36, `pkg/printers/internalversion/printers.go` and `util/duration`.

use jiff::Timestamp;
use serde_json::Value;

use crate::object;

/// The text at a path, or `missing` where there is none.
pub(super) fn text<'a>(value: &'a Value, path: &[&str], missing: &'a str) -> &'a str {
    match object::text(value, path) {
        "" => missing,
        found => found,
    }
}

/// How long ago the time at a path was, or `<unknown>`.
pub(super) fn since(value: &Value, path: &[&str], now: Timestamp) -> String {
    match time(value, path) {
        Some(then) => between(then, now),
        None => "<unknown>".to_owned(),
    }
}

/// The time at a path.
pub(super) fn time(value: &Value, path: &[&str]) -> Option<Timestamp> {
    object::text(value, path).parse().ok()
}

/// The span between two times, in two or three significant figures.
pub(super) fn between(from: Timestamp, to: Timestamp) -> String {
    human(to.duration_since(from).as_secs_f64())
}

/// A span as `duration.HumanDuration` has it.
fn human(seconds: f64) -> String {
    // Go's conversion cuts off towards zero.
    let whole = seconds as i64;
    let (minutes, hours) = (whole / 60, whole / 3_600);
    let pair = |large: i64, unit: &str, small: i64, part: &str| {
        if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{small}{part}") }
    };
    match whole {
        // Clocks may differ a little.
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{whole}s"),
        _ if minutes < 10 => pair(minutes, "m", whole % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => pair(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 24 * 8 => pair(hours / 24, "d", hours % 24, "h"),
        _ if hours < 24 * 365 * 2 => format!("{}d", hours / 24),
        _ if hours < 24 * 365 * 8 => pair(hours / 24 / 365, "y", hours / 24 % 365, "d"),
        _ => format!("{}y", hours / 24 / 365),
    }
}

/// One field of each item of a list, with commas between.
pub(super) fn joined(items: &[Value], field: &str) -> String {
    items.iter().map(|item| object::text(item, &[field])).collect::<Vec<_>>().join(",")
}

/// Texts of a list, with commas between.
pub(super) fn words(items: &[Value]) -> String {
    items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
}

/// `a=b,c=d`, or `<none>`.
pub(super) fn labels(value: &Value, path: &[&str]) -> String {
    let labels = object::map(value, path).into_iter().flatten();
    let pairs: Vec<String> =
        labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or(""))).collect();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

/// A label selector in one line, or `<none>`.
pub(super) fn selector(value: &Value, path: &[&str]) -> String {
    let parsed = object::at(value, path).and_then(crate::select::LabelSelector::from_object);
    match parsed.map(|s| s.to_string()) {
        Some(text) if !text.is_empty() => text,
        _ => "<none>".to_owned(),
    }
}

/// Is a condition of this type True?
pub(super) fn has(value: &Value, condition: &str) -> bool {
    status_of(value, condition) == Some("True")
}

/// The status of a condition.
pub(super) fn status_of<'a>(value: &'a Value, condition: &str) -> Option<&'a str> {
    let conditions = object::list(value, &["status", "conditions"]);
    let found = conditions.iter().find(|c| object::text(c, &["type"]) == condition)?;
    Some(object::text(found, &["status"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_written_as_kubectl_users_know_them() {
        let cases: [(f64, &str); 18] = [
            (-2.0, "<invalid>"),
            (-1.0, "0s"),
            (-0.5, "0s"),
            (0.0, "0s"),
            (119.9, "119s"),
            (120.0, "2m"),
            (599.0, "9m59s"),
            (600.0, "10m"),
            (10_799.0, "179m"),
            (10_800.0, "3h"),
            (28_799.0, "7h59m"),
            (28_800.0, "8h"),
            (172_799.0, "47h"),
            (172_800.0, "2d"),
            (691_199.0, "7d23h"),
            (691_200.0, "8d"),
            (63_072_000.0, "2y"),
            (252_288_000.0, "8y"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(human(seconds), expected, "{seconds}");
        }
    }
}
