//! What is printed, and what is refused.

use std::collections::BTreeSet;

use expect_test::expect;

use super::*;

fn args() -> Args {
    Args { namespace: "soroi-system".into(), image: IMAGE.into(), replicas: 2, config: None }
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
        MutatingAdmissionPolicy          -              jobs.soroi.dev
        MutatingAdmissionPolicyBinding   -              jobs.soroi.dev
        MutatingAdmissionPolicy          -              pods.soroi.dev
        MutatingAdmissionPolicyBinding   -              pods.soroi.dev
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
                                         limitranges namespaces nodes: list watch
                                         pods: get list watch patch delete
                                         pods/binding: create
                                         pods/status: patch
          batch                          jobs: get list watch patch
          batch                          jobs/finalizers: update
          batch                          jobs/status: patch
          events.k8s.io                  events: create patch
          kueue.x-k8s.io                 admissionchecks: list watch
          kueue.x-k8s.io                 clusterqueues: get list watch patch
          kueue.x-k8s.io                 clusterqueues/status: patch
          kueue.x-k8s.io                 cohorts: list watch
          kueue.x-k8s.io                 localqueues: get list watch patch
          kueue.x-k8s.io                 localqueues/status: patch
          kueue.x-k8s.io                 resourceflavors topologies: get list watch patch
          kueue.x-k8s.io                 workloadpriorityclasses: list watch
          kueue.x-k8s.io                 workloads: get list watch create patch
          kueue.x-k8s.io                 workloads/status: patch
          node.k8s.io                    runtimeclasses: list watch
          scheduling.k8s.io              priorityclasses: list watch
          scheduling.volcano.sh          podgroups: get list watch create patch
          scheduling.volcano.sh          podgroups/finalizers: update
          scheduling.volcano.sh          queues: get list watch create patch
          scheduling.volcano.sh          queues/status: patch
          soroi.dev                      gangplans: get list watch create update patch delete
          coordination.k8s.io            leases: list only c1f6bfd2.kueue.x-k8s.io volcano
          admissionregistration.k8s.io   mutatingadmissionpolicies mutatingadmissionpolicybindings: list watch
        Role
          coordination.k8s.io            leases: get update only soroi
          coordination.k8s.io            leases: create
                                         pods: create
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
              soroi.dev/configuration: a0f0302d379f62bb090dfd72507e75a91f2525cb
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
    told += &refusal("http: {bindAddress: '127.0.0.1:8081'}");
    told += &refusal("http: {bindAddress: '0.0.0.0:0'}");
    told += &refusal("identity: me");
    told += &refusal("placment: Unified");
    expect![[r#"
        leaderElection.namespace: must be that of --namespace (soroi-system), not elsewhere
        http.bindAddress: 127.0.0.1:8081 is not to be reached by a kubelet; use 0.0.0.0:8081
        http.bindAddress: 0.0.0.0:0 is not to be reached by a kubelet; use 0.0.0.0:8081
        identity: replicas of a Deployment have their own names; leave it out
        placment: unknown field `placment`, expected one of `placement`, `timeouts`, `undoBackoff`, `requests`, `identity`, `leaderElection`, `http`
    "#]].assert_eq(&told);
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
