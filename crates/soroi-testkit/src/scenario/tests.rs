//! What a page means.

use expect_test::{Expect, expect};

use super::*;

const PAGE: &str = r#"# A gang wakes

Some prose.

```yaml settings
placements: [Unified, AfterAdmission]
within: 20s
```

```yaml late.yaml
apiVersion: v1
kind: Pod
metadata: {name: late}
```

```console
$ node w1..w2 gpu=2
$ queue main gpu=4
$ job train pods=4 gpu=1  # the gang
$ get gangs
GANG    STATE
train   Pending

$ apply late.yaml
error: no such thing
```

```console Unified
$ delete pod of train on w1
$ patch job train {spec: {suspend: false}}
$ forbid bound train > 0 and usage main gpu > 4
```
"#;

fn listed(page: &str) -> String {
    match Scenario::parse("wake", page) {
        Ok(scenario) => scenario
            .steps
            .iter()
            .map(|step| {
                format!("{} {:?} {} => {:?}\n", step.line, step.only.placements, step.text, step.expected)
            })
            .collect(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_page_is_steps_with_what_must_be_seen() {
    expect![[r#"
        17 [] node w1..w2 gpu=2 => []
        18 [] queue main gpu=4 => []
        19 [] job train pods=4 gpu=1 => []
        20 [] get gangs => ["GANG    STATE", "train   Pending"]
        24 [] apply late.yaml => ["error: no such thing"]
        29 [Unified] delete pod of train on w1 => []
        30 [Unified] patch job train {spec: {suspend: false}} => []
        31 [Unified] forbid bound train > 0 and usage main gpu > 4 => []
    "#]]
    .assert_eq(&listed(PAGE));
    let scenario = Scenario::parse("wake", PAGE).unwrap();
    assert_eq!(scenario.title, "A gang wakes");
    assert_eq!(scenario.settings.placements, [Placement::Unified, Placement::AfterAdmission]);
    assert_eq!(scenario.settings.within, Duration::from_secs(20));
}

#[test]
fn what_cannot_be_understood_is_named_with_its_line() {
    fn check(page: &str, expected: Expect) {
        expected.assert_eq(&listed(page));
    }
    check("```console\n$ frobnicate\n```\n", expect!["line 2: unknown verb `frobnicate`"]);
    check("```console\n$ job a gpus=1\n```\n", expect!["line 2: unknown option `gpus=`"]);
    check("```console\n$ get gangs\n```\n", expect!["line 2: the header of the table is missing"]);
    check("```console\n$ wait 3\n", expect!["line 1: the block is never closed"]);
    check("```console\n$ wait 3\n```\n", expect!["line 2: `3` is no span of time"]);
    check("```console Fast\n$ wait 3s\n```\n", expect!["line 1: `Fast` is no placement policy"]);
    check("```console\n$ forbid bound a >= 1\n```\n", expect!["line 2: `bound a >= 1`: `<`, `=` or `>`"]);
    check("```console\n$ delete pod of\n```\n", expect!["line 2: the gang is missing"]);
    check("```console\n$ refuse pods some\n```\n", expect!["line 2: `1/N` or `none`, not `some`"]);
    check(
        "```yaml settings\nskip: {moon: far}\n```\n",
        expect!["line 1: skip: `moon` is no kind of run (seeds, crashes, real)"],
    );
    check("no steps\n", expect!["line 1: there is no step (a ```console or ```yaml apply block)"]);
}

#[test]
fn what_was_seen_replaces_what_was_expected() {
    let scenario = Scenario::parse("wake", PAGE).unwrap();
    let seen = BTreeMap::from([(20, vec!["GANG    STATE".to_owned(), "train   Admitted".to_owned()])]);
    let page = scenario.rewrite(PAGE, &seen);
    assert_eq!(page, PAGE.replace("train   Pending", "train   Admitted"));
}

/// The manifests of a line as one JSON document per line.
fn built(line: &str) -> String {
    let page = format!("```console\n$ {line}\n```\n");
    match Scenario::parse("line", &page).map(|scenario| scenario.steps[0].action.clone()) {
        Ok(Action::Apply(manifests)) => manifests.iter().map(|manifest| format!("{manifest}\n")).collect(),
        other => format!("{other:?}"),
    }
}

#[test]
fn short_lines_stand_for_whole_manifests() {
    expect![[r#"
        {"apiVersion":"v1","kind":"Node","metadata":{"labels":{"example.com/pool":"train","kubernetes.io/hostname":"w1","topology.example.com/rack":"r1"},"name":"w1"},"spec":{"taints":[{"effect":"NoSchedule","key":"example.com/hot","value":"yes"}]},"status":{"allocatable":{"cpu":"32","example.com/gpu":"2","memory":"128Gi","pods":"110"},"capacity":{"cpu":"32","example.com/gpu":"2","memory":"128Gi","pods":"110"}}}
    "#]]
    .assert_eq(&built("node w1 gpu=2 rack=r1 taint:example.com/hot=yes:NoSchedule"));
    expect![[r#"
        {"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"ResourceFlavor","metadata":{"name":"default"},"spec":{}}
        {"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"ClusterQueue","metadata":{"name":"main"},"spec":{"cohortName":"all","namespaceSelector":{},"queueingStrategy":"StrictFIFO","resourceGroups":[{"coveredResources":["example.com/gpu"],"flavors":[{"name":"default","resources":[{"borrowingLimit":"2","name":"example.com/gpu","nominalQuota":"4"}]}]}]}}
        {"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"LocalQueue","metadata":{"name":"main","namespace":"team-a"},"spec":{"clusterQueue":"main"}}
    "#]]
    .assert_eq(&built("queue main gpu=4 borrow:gpu=2 cohort=all strict in=team-a"));
    expect![[r#"
        {"apiVersion":"batch/v1","kind":"Job","metadata":{"labels":{"kueue.x-k8s.io/queue-name":"main"},"name":"train","namespace":"default"},"spec":{"backoffLimit":0,"completionMode":"Indexed","completions":2,"parallelism":2,"suspend":true,"template":{"metadata":{"annotations":{"kueue.x-k8s.io/podset-required-topology":"topology.example.com/rack","soroi.dev/run-for":"30s"}},"spec":{"containers":[{"image":"registry.example/train:1","name":"main","resources":{"limits":{"example.com/gpu":"1"},"requests":{"cpu":"500m","example.com/gpu":"1"}}}],"restartPolicy":"Never"}}}}
    "#]]
    .assert_eq(&built("job train pods=2 gpu=1 cpu=500m runs=30s required=rack backoff=0 indexed"));
    expect![[r#"
        {"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{},"labels":{},"name":"hog","namespace":"team-a"},"spec":{"containers":[{"image":"registry.example/train:1","name":"main","resources":{"limits":{"example.com/gpu":"1"},"requests":{"example.com/gpu":"1"}}}],"nodeName":"w1","restartPolicy":"Never","schedulerName":"default-scheduler"}}
    "#]]
    .assert_eq(&built("pod team-a/hog gpu=1 on=w1"));
    expect![[r#"
        {"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"labels":{"kueue.x-k8s.io/queue-name":"main"},"name":"g1","namespace":"default"},"spec":{"minMember":2}}
    "#]]
    .assert_eq(&built("group g1 min=2 queue=main"));
}
