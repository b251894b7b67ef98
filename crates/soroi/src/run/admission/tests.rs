//! The policies as they are applied. That they do what `soroi_webhook` does is shown on a real API
//! server, which alone evaluates them.

use expect_test::expect;

use super::*;

#[test]
fn policies_match_by_label_and_say_what_they_change() {
    let spec = |name: &str| {
        let found = objects().into_iter().find(|(path, _)| path.ends_with(&format!("{POLICIES}/{name}")));
        serde_json::to_string_pretty(&found.unwrap().1["spec"]).unwrap()
    };
    expect![[r#""#]].assert_eq(&spec("jobs.soroi.dev"));
    expect![[r#""#]].assert_eq(&spec("pods.soroi.dev"));
}

#[test]
fn every_policy_is_bound() {
    let paths: Vec<String> = objects().into_iter().map(|(path, _)| path.replace(GROUP, "")).collect();
    expect![[r#""#]].assert_eq(&paths.join("\n"));
}
