//! What is printed, and what is refused.

use std::collections::BTreeSet;

use expect_test::expect;

use super::*;

fn args() -> Args {
    Args {
        namespace: "soroi-system".into(),
        image: IMAGE.into(),
        replicas: 2,
        config: None,
        defaults: Defaults::Policies,
    }
}

fn settings(text: &str) -> Map<String, Value> {
    serde_saphyr::from_str(text).unwrap()
}

fn find<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    objects.iter().find(|object| object["kind"] == kind).unwrap()
}

#[test]
fn everything_is_there_after_what_it_needs() {
    let objects = objects(&wanted(&args(), Map::new()).unwrap()).unwrap();
    let line = |object: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let meta = &object["metadata"];
        format!("{:<32} {:<14} {}\n", text(&object["kind"]), text(&meta["namespace"]), text(&meta["name"]))
    };
    let others = objects.iter().filter(|object| object["kind"] != "CustomResourceDefinition");
    expect![[r#"
        Namespace                        -              soroi-system
        PriorityClass                    -              soroi
        ServiceAccount                   soroi-system   soroi
        ClusterRole                      -              soroi
        ClusterRoleBinding               -              soroi
        Role                             soroi-system   soroi
        RoleBinding                      soroi-system   soroi
        ConfigMap                        soroi-system   soroi
        Service                          soroi-system   soroi
        PodDisruptionBudget              soroi-system   soroi
        Deployment                       soroi-system   soroi
        MutatingAdmissionPolicy          -              default-queue.soroi.dev
        MutatingAdmissionPolicyBinding   -              default-queue.soroi.dev
        MutatingAdmissionPolicy          -              jobs.soroi.dev
        MutatingAdmissionPolicyBinding   -              jobs.soroi.dev
        MutatingAdmissionPolicy          -              pods.soroi.dev
        MutatingAdmissionPolicyBinding   -              pods.soroi.dev
        ValidatingWebhookConfiguration   -              soroi
        MutatingWebhookConfiguration     -              soroi
    "#]]
    .assert_eq(&others.map(line).collect::<String>());
    let crds = objects.iter().filter(|object| object["kind"] == "CustomResourceDefinition");
    assert_eq!(crds.count(), soroi_api::crds::all().len());
    let place = |object: &Value| {
        [
            &object["apiVersion"],
            &object["kind"],
            &object["metadata"]["namespace"],
            &object["metadata"]["name"],
        ]
        .map(Value::to_string)
    };
    let places: BTreeSet<_> = objects.iter().map(place).collect();
    assert_eq!(places.len(), objects.len(), "each of them once");
}

#[test]
fn the_rights_are_named_one_by_one() {
    let objects = objects(&wanted(&args(), Map::new()).unwrap()).unwrap();
    let mut told = String::new();
    for kind in ["ClusterRole", "Role"] {
        told += &format!("{kind}\n");
        for rule in find(&objects, kind)["rules"].as_array().unwrap() {
            let list = |field: &str| {
                let words = rule[field].as_array().into_iter().flatten().filter_map(Value::as_str);
                words.collect::<Vec<_>>().join(" ")
            };
            let names = if rule["resourceNames"].is_array() {
                format!(" only {}", list("resourceNames"))
            } else {
                String::new()
            };
            told += &format!("  {:<30} {}: {}{names}\n", list("apiGroups"), list("resources"), list("verbs"));
        }
    }
    expect![[r#"
        ClusterRole
                                         limitranges namespaces nodes persistentvolumeclaims persistentvolumes: list watch
                                         pods: get list watch patch delete
                                         pods/binding: create
                                         pods/status: patch
          batch                          jobs: get list watch patch delete
          batch                          jobs/finalizers: update
          batch                          jobs/status: patch
          events.k8s.io                  events: create patch
          kueue.x-k8s.io                 admissionchecks: list watch
          kueue.x-k8s.io                 clusterqueues: get list watch patch
          kueue.x-k8s.io                 clusterqueues/status: patch
          kueue.x-k8s.io                 cohorts: list watch
          kueue.x-k8s.io                 cohorts/status: patch
          kueue.x-k8s.io                 localqueues: get list watch patch
          kueue.x-k8s.io                 localqueues/status: patch
          kueue.x-k8s.io                 resourceflavors topologies: get list watch patch
          kueue.x-k8s.io                 workloadpriorityclasses: list watch
          kueue.x-k8s.io                 workloads: get list watch create patch delete
          kueue.x-k8s.io                 workloads/status: patch
          node.k8s.io                    runtimeclasses: list watch
          scheduling.k8s.io              priorityclasses: list watch
          storage.k8s.io                 csinodes: list watch
          scheduling.volcano.sh          podgroups: get list watch create patch
          scheduling.volcano.sh          podgroups/finalizers: update
          scheduling.volcano.sh          queues: get list watch create patch
          scheduling.volcano.sh          queues/status: patch
          soroi.dev                      gangplans: get list watch create update patch delete
          coordination.k8s.io            leases: list only c1f6bfd2.kueue.x-k8s.io volcano
          admissionregistration.k8s.io   mutatingadmissionpolicies mutatingadmissionpolicybindings mutatingwebhookconfigurations: list watch
          admissionregistration.k8s.io   validatingwebhookconfigurations mutatingwebhookconfigurations: get patch only soroi
          apiextensions.k8s.io           customresourcedefinitions: get patch only admissionchecks.kueue.x-k8s.io clusterqueues.kueue.x-k8s.io cohorts.kueue.x-k8s.io localqueues.kueue.x-k8s.io resourceflavors.kueue.x-k8s.io topologies.kueue.x-k8s.io workloads.kueue.x-k8s.io workloadpriorityclasses.kueue.x-k8s.io
        Role
          coordination.k8s.io            leases: get update only soroi
          coordination.k8s.io            leases: create
                                         pods: create
                                         secrets: get update only soroi-webhooks
                                         secrets: create
    "#]]
    .assert_eq(&told);
    assert!(!told.contains('*'));
    for verb in ["escalate", "bind\n", "impersonate", "deletecollection"] {
        assert!(!told.contains(verb), "{verb}");
    }
}

#[test]
fn the_pod_is_as_small_as_it_can_be() {
    let objects = objects(&wanted(&args(), Map::new()).unwrap()).unwrap();
    let deployment = find(&objects, "Deployment");
    expect![[r#"
        replicas: 2
        selector:
          matchLabels:
            app.kubernetes.io/component: controller
            app.kubernetes.io/name: soroi
        template:
          metadata:
            annotations:
              soroi.dev/configuration: 6e44e481536ed60e847ac09c9367092514e25da1
            labels:
              app.kubernetes.io/component: controller
              app.kubernetes.io/name: soroi
              app.kubernetes.io/part-of: soroi
          spec:
            affinity:
              podAntiAffinity:
                preferredDuringSchedulingIgnoredDuringExecution:
                - podAffinityTerm:
                    labelSelector:
                      matchLabels:
                        app.kubernetes.io/component: controller
                        app.kubernetes.io/name: soroi
                    topologyKey: kubernetes.io/hostname
                  weight: 100
                - podAffinityTerm:
                    labelSelector:
                      matchLabels:
                        app.kubernetes.io/component: controller
                        app.kubernetes.io/name: soroi
                    topologyKey: topology.kubernetes.io/zone
                  weight: 50
            automountServiceAccountToken: true
            containers:
            - args:
              - run
              - --install=never
              - --log=json
              - --config=/etc/soroi/configuration.yaml
              image: ghcr.io/soroi-dev/soroi:0.1.0
              livenessProbe:
                failureThreshold: 6
                httpGet:
                  path: /healthz
                  port: http
              name: soroi
              ports:
              - containerPort: 8081
                name: http
              - containerPort: 9443
                name: webhooks
              readinessProbe:
                httpGet:
                  path: /readyz
                  port: http
                periodSeconds: 5
              resources:
                limits:
                  memory: 1Gi
                requests:
                  cpu: 250m
                  memory: 256Mi
              securityContext:
                allowPrivilegeEscalation: false
                capabilities:
                  drop:
                  - ALL
                readOnlyRootFilesystem: true
              volumeMounts:
              - mountPath: /etc/soroi
                name: configuration
                readOnly: true
            priorityClassName: soroi
            securityContext:
              runAsGroup: 65532
              runAsNonRoot: true
              runAsUser: 65532
              seccompProfile:
                type: RuntimeDefault
            serviceAccountName: soroi
            volumes:
            - configMap:
                name: soroi
              name: configuration
    "#]]
    .assert_eq(&serde_saphyr::to_string(&deployment["spec"]).unwrap());
    expect![[r#"
        apiVersion: soroi.dev/v1alpha1
        kind: Configuration
        http:
          bindAddress: 0.0.0.0:8081
        leaderElection:
          namespace: soroi-system
        webhooks: {}
    "#]]
    .assert_eq(find(&objects, "ConfigMap")["data"]["configuration.yaml"].as_str().unwrap());
}

#[test]
fn settings_are_those_of_the_file_and_of_a_deployment() {
    let args =
        Args { namespace: "batch".into(), image: "registry.local/soroi:1".into(), replicas: 3, ..args() };
    let file = "
        apiVersion: soroi.dev/v1alpha1
        kind: Configuration
        placement: QuotaOnly
        http: {bindAddress: '[::]:9000'}
        leaderElection: {name: other}
    ";
    let wanted = wanted(&args, settings(file)).unwrap();
    expect![[r#"
        apiVersion: soroi.dev/v1alpha1
        kind: Configuration
        http:
          bindAddress: "[::]:9000"
        leaderElection:
          name: other
          namespace: batch
        placement: QuotaOnly
        webhooks: {}
    "#]]
    .assert_eq(&wanted.text);
    let objects = objects(&wanted).unwrap();
    let deployment = find(&objects, "Deployment");
    assert_eq!(deployment["metadata"]["namespace"], "batch");
    assert_eq!(deployment["spec"]["replicas"], 3);
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "registry.local/soroi:1");
    assert_eq!(container["ports"][0]["containerPort"], 9000);
    assert_eq!(find(&objects, "Role")["rules"][0]["resourceNames"][0], "other");
    assert_eq!(find(&objects, "ClusterRoleBinding")["subjects"][0]["namespace"], "batch");
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let refusal = |text: &str| format!("{:#}\n", wanted(&args(), settings(text)).unwrap_err());
    let mut told = refusal("leaderElection: {namespace: elsewhere}");
    let named = Args { namespace: "Bad_Name".into(), ..args() };
    told += &format!("{:#}\n", wanted(&named, settings("")).unwrap_err());
    told += &refusal("http: {bindAddress: '127.0.0.1:8081'}");
    told += &refusal("http: {bindAddress: '0.0.0.0:0'}");
    told += &refusal("webhooks: {bindAddress: '127.0.0.1:9443'}");
    told += &refusal("webhooks: {service: other}");
    told += &refusal("webhooks: {url: 'http://x'}");
    told += &refusal("webhooks: {url: 'https://x/y'}");
    told += &refusal("webhooks: {certificateLifetime: 1s}");
    told += &refusal("webhooks: {certificateFiles: {key: a}}");
    told += &refusal("identity: me");
    told += &refusal("placment: Unified");
    expect![[r#"
        leaderElection.namespace: must be that of --namespace (soroi-system), not elsewhere
        leaderElection.namespace: "Bad_Name" is no name: up to 63 lower-case letters, digits and '-', which starts and ends with a letter or digit
        http.bindAddress: 127.0.0.1:8081 is not to be reached by a kubelet; use 0.0.0.0:8081
        http.bindAddress: 0.0.0.0:0 is not to be reached by a kubelet; use 0.0.0.0:8081
        webhooks.bindAddress: 127.0.0.1:9443 is not to be reached by an API server; use 0.0.0.0:9443
        webhooks.service: must be soroi, the Service in this manifest, not other
        webhooks.url: must be https:// and a host, with its port if not 443, not "http://x"
        webhooks.url: must be https:// and a host, with its port if not 443, not "https://x/y"
        webhooks.certificateLifetime: must be at least 15 s
        webhooks.certificateFiles: missing field `certificate`
        identity: replicas of a Deployment have their own names; leave it out
        placment: unknown field `placment`, expected one of `placement`, `packing`, `timeouts`, `undoBackoff`, `waitForPodsReady`, `fairSharing`, `resources`, `objectRetentionPolicies`, `requests`, `identity`, `compat`, `leaderElection`, `http`, `webhooks`
    "#]].assert_eq(&told);
}

#[test]
fn webhooks_ask_for_nothing_that_is_not_managed() {
    let told = |defaults: Defaults, text: &str| {
        let wanted = wanted(&Args { defaults, ..args() }, settings(text)).unwrap();
        let mut told = String::new();
        for object in objects(&wanted).unwrap() {
            for webhook in object["webhooks"].as_array().into_iter().flatten() {
                let of = object["kind"].as_str().unwrap().trim_end_matches("WebhookConfiguration");
                let text = |value: &Value| value.to_string().replace('"', "");
                let rules = webhook["rules"].as_array().unwrap().iter();
                let rules: Vec<_> = rules
                    .map(|rule| format!("{} {}", text(&rule["resources"]), text(&rule["operations"])))
                    .collect();
                let only = &webhook["objectSelector"]["matchExpressions"][0]["key"];
                told += &format!(
                    "{of} {} {} only {}\n",
                    text(&webhook["name"]),
                    text(&webhook["failurePolicy"]),
                    text(only)
                );
                told += &format!("  {}\n", rules.join("\n  "));
                told += &format!("  {}\n", webhook["clientConfig"]);
            }
        }
        told
    };
    expect![[r#"
        Validating kinds.soroi.dev Ignore only null
          [clusterqueues,cohorts,localqueues,resourceflavors,topologies,workloads,workloads/status] [CREATE,UPDATE]
          [podgroups] [CREATE,UPDATE]
          [queues] [CREATE,UPDATE,DELETE]
          [gangplans] [CREATE,UPDATE]
          {"service":{"name":"soroi","namespace":"soroi-system","path":"/validate","port":443}}
        Validating jobs.soroi.dev Ignore only kueue.x-k8s.io/queue-name
          [jobs] [CREATE,UPDATE]
          {"service":{"name":"soroi","namespace":"soroi-system","path":"/validate","port":443}}
        Validating pods.soroi.dev Ignore only null
          [pods] [UPDATE]
          {"service":{"name":"soroi","namespace":"soroi-system","path":"/validate","port":443}}
        Mutating queues.soroi.dev Ignore only null
          [queues] [CREATE]
          {"service":{"name":"soroi","namespace":"soroi-system","path":"/default","port":443}}
    "#]].assert_eq(&told(Defaults::Policies, "{}"));
    let by_webhooks = told(Defaults::Webhooks, "webhooks: {url: 'https://127.0.0.1:9443'}");
    expect![[r#"
        .soroi.dev Fail only kueue.x-k8s.io/queue-name
          [jobs] [CREATE]
          {"url":"https://127.0.0.1:9443/default"}
        Mutating pods.soroi.dev Fail only soroi.dev/gang
          [pods] [CREATE]
          {"url":"https://127.0.0.1:9443/default"}
        Mutating default-queue.soroi.dev Ignore only null
          [jobs] [CREATE]
          {"url":"https://127.0.0.1:9443/default"}
    "#]]
    .assert_eq(by_webhooks.split_once("Mutating jobs").unwrap().1);
    assert_eq!(told(Defaults::Policies, "webhooks: null"), "");
}

/// kubectl reads YAML 1.1, where more words than `true` are truth values.
#[test]
fn what_is_printed_is_read_back_the_same() {
    let objects = objects(&wanted(&args(), Map::new()).unwrap()).unwrap();
    let text = yaml(&objects).unwrap();
    let read: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    assert_eq!(read, objects);
    for line in text.lines() {
        let value = line.rsplit(": ").next().unwrap_or_default();
        assert!(!["y", "n", "yes", "no", "on", "off"].contains(&value.to_lowercase().as_str()), "{line}");
    }
}
