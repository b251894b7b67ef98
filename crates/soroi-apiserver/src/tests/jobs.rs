//! What `jobs` promises, as tests.

use expect_test::expect;

use super::check;

const TEMPLATE: &str = "template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}";

fn told(story: &str) -> String {
    story.replace("TEMPLATE", TEMPLATE)
}

#[test]
fn a_new_job_gets_what_its_author_left_out() {
    check(
        &told(
            "
        POST jobs {metadata: {name: a}, spec: {TEMPLATE}} | .spec.parallelism .spec.completions .spec.backoffLimit .spec.suspend .spec.completionMode .spec.podReplacementPolicy .spec.selector .spec.template.metadata .metadata.labels
        POST jobs {metadata: {name: b, labels: {x: why}}, spec: {parallelism: 3, TEMPLATE}, status: {active: 1}} | .spec.completions .metadata.labels .status
        ",
        ),
        expect![[r#"
            POST jobs {metadata: {name: a}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}} | .spec.parallelism .spec.completions .spec.backoffLimit .spec.suspend .spec.completionMode .spec.podReplacementPolicy .spec.selector .spec.template.metadata .metadata.labels
                201 Job a 1 1 6 false "NonIndexed" "TerminatingOrFailed" {"matchLabels":{"batch.kubernetes.io/controller-uid":"8621a03f-e0bb-4b7b-8e1f-7555983aa92f"}} {"labels":{"batch.kubernetes.io/controller-uid":"8621a03f-e0bb-4b7b-8e1f-7555983aa92f","batch.kubernetes.io/job-name":"a","controller-uid":"8621a03f-e0bb-4b7b-8e1f-7555983aa92f","job-name":"a"}} {"batch.kubernetes.io/controller-uid":"8621a03f-e0bb-4b7b-8e1f-7555983aa92f","batch.kubernetes.io/job-name":"a","controller-uid":"8621a03f-e0bb-4b7b-8e1f-7555983aa92f","job-name":"a"}
            POST jobs {metadata: {name: b, labels: {x: why}}, spec: {parallelism: 3, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}, status: {active: 1}} | .spec.completions .metadata.labels .status
                201 Job b null {"x":"why"} null
        "#]],
    );
}

#[test]
fn wrong_jobs_are_refused() {
    check(
        &told(
            "
        POST jobs {metadata: {name: a}, spec: {template: {spec: {containers: [{name: c, image: i}]}}}}
        POST jobs {metadata: {name: a}, spec: {parallelism: -1, completionMode: Indexed, TEMPLATE}}
        POST jobs {metadata: {name: a}, spec: {completionMode: Odd, backoffLimitPerIndex: 1, TEMPLATE}}
        POST jobs {metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, TEMPLATE}}
        POST jobs {metadata: {name: a}}
        ",
        ),
        expect![[r#"
            POST jobs {metadata: {name: a}, spec: {template: {spec: {containers: [{name: c, image: i}]}}}}
                422 Invalid Job.batch "a" is invalid: spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"
            POST jobs {metadata: {name: a}, spec: {parallelism: -1, completionMode: Indexed, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}
                422 Invalid Job.batch "a" is invalid: [spec.parallelism: Invalid value: -1: must be greater than or equal to 0, spec.completions: Required value: when completion mode is Indexed]
            POST jobs {metadata: {name: a}, spec: {completionMode: Odd, backoffLimitPerIndex: 1, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}
                422 Invalid Job.batch "a" is invalid: [spec.completionMode: Unsupported value: "Odd": supported values: "NonIndexed", "Indexed", spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode]
            POST jobs {metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}
                422 Invalid Job.batch "a" is invalid: [spec.selector: Invalid value: {"matchLabels":{"a":"b","batch.kubernetes.io/controller-uid":"3466e9a0-8391-4f64-981a-8d2b5a4485ac"}}: `selector` not auto-generated, spec.template.metadata.labels: Invalid value: {"batch.kubernetes.io/controller-uid":"3466e9a0-8391-4f64-981a-8d2b5a4485ac","batch.kubernetes.io/job-name":"a","controller-uid":"3466e9a0-8391-4f64-981a-8d2b5a4485ac","job-name":"a"}: `selector` does not match template `labels`]
            POST jobs {metadata: {name: a}}
                422 Invalid Job.batch "a" is invalid: [spec.template.spec.containers: Required value, spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"]
        "#]],
    );
}

#[test]
fn a_suspended_job_may_be_placed_before_it_starts() {
    check(
        &told(
            "
        POST jobs {metadata: {name: a}, spec: {suspend: true, TEMPLATE}}
        # The controller has not said yet that the Job is suspended.
        PATCH:merge jobs/a {spec: {suspend: false, template: {spec: {nodeSelector: {a: b}}}}} | .reason
        PATCH:merge jobs/a/status {status: {conditions: [{type: Suspended, status: 'True'}]}}
        PATCH:merge jobs/a {spec: {template: {spec: {schedulerName: other}}}} | .reason
        PATCH:merge jobs/a {spec: {template: {spec: {priorityClassName: other}}}} | .reason
        PATCH:strategic jobs/a {spec: {template: {spec: {containers: [{name: c, image: other}]}}}} | .reason
        PATCH:strategic jobs/a {spec: {suspend: false, parallelism: 2, template: {metadata: {labels: {l: m}, annotations: {n: o}}, spec: {nodeSelector: {a: b}, tolerations: [{key: k, operator: Exists}], schedulingGates: [{name: g}], containers: [{name: c, resources: {requests: {cpu: 1}}}], affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: k, operator: Exists}]}]}}}}}}} | .spec.suspend .spec.parallelism .spec.template.spec.nodeSelector .metadata.generation
        # Now it runs, and nothing of the template may change.
        PATCH:merge jobs/a {spec: {template: {spec: {nodeSelector: {a: c}}}}} | .reason
        PATCH:merge jobs/a {spec: {suspend: true}}
        PATCH:merge jobs/a/status {status: {active: 1}}
        PATCH:merge jobs/a {spec: {template: {spec: {nodeSelector: null}}}} | .reason
        PATCH:merge jobs/a/status {status: {active: 0}}
        PATCH:merge jobs/a {spec: {template: {spec: {nodeSelector: null}}}} | .spec.template.spec.nodeSelector
        ",
        ),
        expect![[r#"
            POST jobs {metadata: {name: a}, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}
                201 Job a
            PATCH:merge jobs/a {spec: {suspend: false, template: {spec: {nodeSelector: {a: b}}}}} | .reason
                422 Invalid Job.batch "a" is invalid: spec.template: Invalid value: {"metadata":{"labels":{"batch.kubernetes.io/controller-uid":"8621a03f-e0bb-4b7b-8e1f-7555983aa92f","batch.kubernetes.io/job-name":"a","controller-uid":"8621a03f-e0bb-4b7b-8e1f-7555983aa92f","job-name":"a"}},"spec":{"containers":[{"image":"i","imagePullPolicy":"Always","name":"c","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","nodeSelector":{"a":"b"},"restartPolicy":"Never","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}}: field is immutable "Invalid"
            PATCH:merge jobs/a/status {status: {conditions: [{type: Suspended, status: 'True'}]}}
                200 Job a
            PATCH:merge jobs/a {spec: {template: {spec: {schedulerName: other}}}} | .reason
                422 Invalid Job.batch "a" is invalid: spec.template: Invalid value: {"metadata":{"labels":{"batch.kubernetes.io/controller-uid":"8621a03f-e0bb-4b7b-8e1f-7555983aa92f","batch.kubernetes.io/job-name":"a","controller-uid":"8621a03f-e0bb-4b7b-8e1f-7555983aa92f","job-name":"a"}},"spec":{"containers":[{"image":"i","imagePullPolicy":"Always","name":"c","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Never","schedulerName":"other","securityContext":{},"terminationGracePeriodSeconds":30}}: field is immutable "Invalid"
            PATCH:merge jobs/a {spec: {template: {spec: {priorityClassName: other}}}} | .reason
                422 Invalid Job.batch "a" is invalid: spec.template: Invalid value: {"metadata":{"labels":{"batch.kubernetes.io/controller-uid":"8621a03f-e0bb-4b7b-8e1f-7555983aa92f","batch.kubernetes.io/job-name":"a","controller-uid":"8621a03f-e0bb-4b7b-8e1f-7555983aa92f","job-name":"a"}},"spec":{"containers":[{"image":"i","imagePullPolicy":"Always","name":"c","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","priorityClassName":"other","restartPolicy":"Never","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}}: field is immutable "Invalid"
            PATCH:strategic jobs/a {spec: {template: {spec: {containers: [{name: c, image: other}]}}}} | .reason
                422 Invalid Job.batch "a" is invalid: spec.template: Invalid value: {"metadata":{"labels":{"batch.kubernetes.io/controller-uid":"8621a03f-e0bb-4b7b-8e1f-7555983aa92f","batch.kubernetes.io/job-name":"a","controller-uid":"8621a03f-e0bb-4b7b-8e1f-7555983aa92f","job-name":"a"}},"spec":{"containers":[{"image":"other","imagePullPolicy":"Always","name":"c","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Never","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}}: field is immutable "Invalid"
            PATCH:strategic jobs/a {spec: {suspend: false, parallelism: 2, template: {metadata: {labels: {l: m}, annotations: {n: o}}, spec: {nodeSelector: {a: b}, tolerations: [{key: k, operator: Exists}], schedulingGates: [{name: g}], containers: [{name: c, resources: {requests: {cpu: 1}}}], affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: k, operator: Exists}]}]}}}}}}} | .spec.suspend .spec.parallelism .spec.template.spec.nodeSelector .metadata.generation
                200 Job a false 2 {"a":"b"} 2
            PATCH:merge jobs/a {spec: {template: {spec: {nodeSelector: {a: c}}}}} | .reason
                422 Invalid Job.batch "a" is invalid: spec.template: Invalid value: {"metadata":{"annotations":{"n":"o"},"labels":{"batch.kubernetes.io/controller-uid":"8621a03f-e0bb-4b7b-8e1f-7555983aa92f","batch.kubernetes.io/job-name":"a","controller-uid":"8621a03f-e0bb-4b7b-8e1f-7555983aa92f","job-name":"a","l":"m"}},"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"Exists"}]}]}}},"containers":[{"image":"i","imagePullPolicy":"Always","name":"c","resources":{"requests":{"cpu":"1"}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","nodeSelector":{"a":"c"},"restartPolicy":"Never","schedulerName":"default-scheduler","schedulingGates":[{"name":"g"}],"securityContext":{},"terminationGracePeriodSeconds":30,"tolerations":[{"key":"k","operator":"Exists"}]}}: field is immutable "Invalid"
            PATCH:merge jobs/a {spec: {suspend: true}}
                200 Job a
            PATCH:merge jobs/a/status {status: {active: 1}}
                200 Job a
            PATCH:merge jobs/a {spec: {template: {spec: {nodeSelector: null}}}} | .reason
                422 Invalid Job.batch "a" is invalid: spec.template: Invalid value: {"metadata":{"annotations":{"n":"o"},"labels":{"batch.kubernetes.io/controller-uid":"8621a03f-e0bb-4b7b-8e1f-7555983aa92f","batch.kubernetes.io/job-name":"a","controller-uid":"8621a03f-e0bb-4b7b-8e1f-7555983aa92f","job-name":"a","l":"m"}},"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"Exists"}]}]}}},"containers":[{"image":"i","imagePullPolicy":"Always","name":"c","resources":{"requests":{"cpu":"1"}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Never","schedulerName":"default-scheduler","schedulingGates":[{"name":"g"}],"securityContext":{},"terminationGracePeriodSeconds":30,"tolerations":[{"key":"k","operator":"Exists"}]}}: field is immutable "Invalid"
            PATCH:merge jobs/a/status {status: {active: 0}}
                200 Job a
            PATCH:merge jobs/a {spec: {template: {spec: {nodeSelector: null}}}} | .spec.template.spec.nodeSelector
                200 Job a null
        "#]],
    );
}

#[test]
fn most_of_a_job_is_fixed() {
    check(
        &told(
            "
        POST jobs {metadata: {name: a}, spec: {TEMPLATE}}
        PATCH:merge jobs/a {spec: {parallelism: 5}} | .spec.parallelism
        PATCH:merge jobs/a {spec: {completions: 5}}
        PATCH:merge jobs/a {spec: {completionMode: Indexed}}
        PATCH:merge jobs/a {spec: {selector: {matchLabels: {a: b}}}} | .details.causes.0.field
        POST jobs {metadata: {name: b}, spec: {completions: 2, parallelism: 2, completionMode: Indexed, TEMPLATE}}
        PATCH:merge jobs/b {spec: {completions: 3}}
        PATCH:merge jobs/b {spec: {completions: 3, parallelism: 3}} | .spec.completions
        PATCH:merge jobs/b/status {status: {active: -1}}
        PATCH:merge jobs/b {spec: {manualSelector: true}, status: {active: 3}} | .status
        ",
        ),
        expect![[r#"
            POST jobs {metadata: {name: a}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}
                201 Job a
            PATCH:merge jobs/a {spec: {parallelism: 5}} | .spec.parallelism
                200 Job a 5
            PATCH:merge jobs/a {spec: {completions: 5}}
                422 Invalid Job.batch "a" is invalid: spec.completions: Invalid value: 5: field is immutable
            PATCH:merge jobs/a {spec: {completionMode: Indexed}}
                422 Invalid Job.batch "a" is invalid: spec.completionMode: Invalid value: "Indexed": field is immutable
            PATCH:merge jobs/a {spec: {selector: {matchLabels: {a: b}}}} | .details.causes.0.field
                422 Invalid Job.batch "a" is invalid: [spec.selector: Invalid value: {"matchLabels":{"a":"b","batch.kubernetes.io/controller-uid":"8621a03f-e0bb-4b7b-8e1f-7555983aa92f"}}: `selector` not auto-generated, spec.template.metadata.labels: Invalid value: {"batch.kubernetes.io/controller-uid":"8621a03f-e0bb-4b7b-8e1f-7555983aa92f","batch.kubernetes.io/job-name":"a","controller-uid":"8621a03f-e0bb-4b7b-8e1f-7555983aa92f","job-name":"a"}: `selector` does not match template `labels`, spec.selector: Invalid value: {"matchLabels":{"a":"b","batch.kubernetes.io/controller-uid":"8621a03f-e0bb-4b7b-8e1f-7555983aa92f"}}: field is immutable] "spec.selector"
            POST jobs {metadata: {name: b}, spec: {completions: 2, parallelism: 2, completionMode: Indexed, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}
                201 Job b
            PATCH:merge jobs/b {spec: {completions: 3}}
                422 Invalid Job.batch "b" is invalid: spec.completions: Invalid value: 3: can only be modified in tandem with spec.parallelism
            PATCH:merge jobs/b {spec: {completions: 3, parallelism: 3}} | .spec.completions
                200 Job b 3
            PATCH:merge jobs/b/status {status: {active: -1}}
                422 Invalid Job.batch "b" is invalid: status.active: Invalid value: -1: must be greater than or equal to 0
            PATCH:merge jobs/b {spec: {manualSelector: true}, status: {active: 3}} | .status
                200 Job b null
        "#]],
    );
}
