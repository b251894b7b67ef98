//! What differs from run to run, taken out of outputs.

use std::sync::LazyLock;

use regex::Regex;

/// What is replaced, in this order.
static RULES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let rules = [
        // What client-go logs of requests that take long.
        (r"(?m)^E\d{4} .*\n?", ""),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
        (r"Resource Version: +\d+", "Resource Version: N"),
        (r#"resourceVersion("?): ?"?\d+"?"#, "resourceVersion$1: N"),
        (r"\d+ bytes", "N bytes"),
        // The characters of generated names, and the hash of a Workload's.
        (r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b", "-*****"),
        (r"-[0-9a-f]{5}\b", "-*****"),
        (r"https?://127\.0\.0\.1:\d+", "URL"),
        (r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b", "IP"),
        (r"(^|[\s(])(\d+[smhd])+(\s|\)|$)", "${1}AGE$3"),
        (r"AGE \(x\d+ over AGE\)", "AGE"),
        (r"[ \t]+", " "),
        (r"(?m) $", ""),
    ];
    rules.into_iter().map(|(pattern, with)| (Regex::new(pattern).unwrap(), with)).collect()
});

/// The text without what differs from run to run.
pub fn normal(text: &str) -> String {
    RULES.iter().fold(text.to_owned(), |text, (pattern, with)| pattern.replace_all(&text, *with).into_owned())
}

#[test]
fn what_differs_from_run_to_run_is_taken_out() {
    let seen =
        "train-6hx2f   0/1   Pending   0   33s   10.244.1.2   node-1\nWarning  Failed  1s (x9 over 9s)  x";
    assert_eq!(normal(seen), "train-***** 0/1 Pending 0 AGE IP node-1\nWarning Failed AGE x");
}
