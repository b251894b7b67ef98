//! Configurations of Kueue, and what becomes of them.

use expect_test::expect;

use super::*;

/// As Kueue 0.18 ships it, in its ConfigMap.
const SHIPPED: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: kueue-manager-config}
data:
  controller_manager_config.yaml: |
    apiVersion: config.kueue.x-k8s.io/v1beta2
    kind: Configuration
    health:
      healthProbeBindAddress: :8081
    metrics:
      bindAddress: :8443
    webhook:
      port: 9443
    leaderElection:
      leaderElect: true
      resourceName: c1f6bfd2.kueue.x-k8s.io
    controller:
      groupKindConcurrency:
        Job.batch: 5
        Pod: 5
    clientConnection:
      qps: 50
      burst: 100
    integrations:
      frameworks: [batch/job, ray.io/rayjob]
";

#[test]
fn what_kueue_ships() {
    expect![[r##"
        # From a config.kueue.x-k8s.io/v1beta2 Configuration.
        apiVersion: soroi.dev/v1alpha1
        kind: Configuration
        http:
          bindAddress: 0.0.0.0:8081
        webhooks:
          bindAddress: 0.0.0.0:9443
        #
        # As Soroi does it anyway:
        #   leaderElection.leaderElect: true
        #     a leader is always elected
        #
        # Without effect here:
        #   clientConnection.burst: 100
        #     Soroi does not limit its rate; requests.inFlight bounds what is under way
        #   clientConnection.qps: 50
        #     Soroi does not limit its rate; requests.inFlight bounds what is under way
        #   controller.groupKindConcurrency.Job.batch: 5
        #     one loop does all the work
        #   controller.groupKindConcurrency.Pod: 5
        #     one loop does all the work
        #   integrations.frameworks: ["batch/job","ray.io/rayjob"]
        #     Jobs, PodGroups and pods are always served, other kinds not yet
        #   leaderElection.resourceName: "c1f6bfd2.kueue.x-k8s.io"
        #     the lease has a name and namespace of its own
        #   metrics.bindAddress: ":8443"
        #     metrics are served with health and readiness, at http.bindAddress
    "##]]
    .assert_eq(&convert(SHIPPED).unwrap());
}

#[test]
fn what_can_be_carried_over() {
    let text = "
        apiVersion: config.kueue.x-k8s.io/v1beta1
        kind: Configuration
        namespace: kueue-system
        manageJobsWithoutQueueName: false
        waitForPodsReady:
          enable: true
          timeout: 5m
          recoveryTimeout: 3m
          blockAdmission: true
          requeuingStrategy: {timestamp: Eviction, backoffBaseSeconds: 5, backoffMaxSeconds: 300, backoffLimitCount: 9}
        leaderElection: {leaderElect: true, leaseDuration: 30s, retryPeriod: 5s, renewDeadline: 20s}
        internalCertManagement: {enable: false, webhookServiceName: kueue-webhook-service}
        webhook: {host: '::1', port: 9443}
        health: {healthProbeBindAddress: '127.0.0.1:9000'}
        metrics: {enableClusterQueueResources: true}
        fairSharing: {preemptionStrategies: [LessThanInitialShare]}
        featureGates: {TopologyAwareScheduling: true, UnadmittedWorkloadsObservability: true}
        somethingNew: {deep: [1]}
    ";
    let text = text.replace("'::1'", "'[::1]'");
    expect![[r##"
        # From a config.kueue.x-k8s.io/v1beta1 Configuration.
        apiVersion: soroi.dev/v1alpha1
        kind: Configuration
        compat:
          reasons: "0.19"
        fairSharing:
          preemptionStrategies:
          - LessThanInitialShare
        http:
          bindAddress: 127.0.0.1:9000
        leaderElection:
          leaseDuration: 30s
          renewEvery: 5s
        timeouts:
          recovery: 3m
        waitForPodsReady:
          blockAdmission: true
          recoveryTimeout: 3m
          requeuingStrategy:
            backoffBaseSeconds: 5
            backoffLimitCount: 9
            backoffMaxSeconds: 300
            timestamp: Eviction
          timeout: 5m
        webhooks:
          bindAddress: "[::1]:9443"
          certificateFiles:
            certificate: /tmp/k8s-webhook-server/serving-certs/tls.crt
            key: /tmp/k8s-webhook-server/serving-certs/tls.key
        #
        # As Soroi does it anyway:
        #   leaderElection.leaderElect: true
        #     a leader is always elected
        #   manageJobsWithoutQueueName: false
        #     Jobs without a queue-name are left alone
        #   metrics.enableClusterQueueResources: true
        #     usage of queues is always shown
        #
        # Without effect here:
        #   featureGates.TopologyAwareScheduling: true
        #     Soroi has no gates: what it has is on
        #   internalCertManagement.webhookServiceName: "kueue-webhook-service"
        #     webhooks.service and webhooks.secret have names of their own
        #   leaderElection.renewDeadline: "20s"
        #     a term lasts as long as its last renewal, no longer
        #   namespace: "kueue-system"
        #     Soroi has a namespace of its own: leaderElection.namespace
        #   somethingNew.deep: [1]
        #     unknown to Soroi, and to the Kueue that it was compared with (0.18)
    "##]]
    .assert_eq(&convert(&text).unwrap());
}

/// Nothing is lost silently: each setting of a file stands in the answer, carried over or by name.
#[test]
fn every_setting_is_carried_over_or_named() {
    for (path, ..) in REASONS {
        let mut value = json!("5s");
        for key in path.rsplit('.') {
            value = json!({ key: value });
        }
        value["apiVersion"] = "config.kueue.x-k8s.io/v1beta2".into();
        value["kind"] = "Configuration".into();
        let answer = convert(&value.to_string()).unwrap();
        assert!(answer.contains(&format!("#   {path}: ")), "{path}: {answer}");
        assert!(!answer.contains("unknown to Soroi"), "{path}: {answer}");
    }
    let odd = "
        apiVersion: config.kueue.x-k8s.io/v1beta2
        kind: Configuration
        health: {healthProbeBindAddress: '0'}
        webhook: {host: localhost, port: 9443}
        waitForPodsReady: {requeuingStrategy: {backoffBaseSeconds: 120}}
    ";
    // Before v1beta2 it had to be switched on.
    let off = odd
        .replace("v1beta2", "v1beta1")
        .replace("waitForPodsReady: {", "waitForPodsReady: {enable: false, timeout: 5m, ");
    expect![[r##"
        # From a config.kueue.x-k8s.io/v1beta2 Configuration.
        apiVersion: soroi.dev/v1alpha1
        kind: Configuration
        timeouts:
          recovery: 30m
        waitForPodsReady:
          requeuingStrategy:
            backoffBaseSeconds: 120
          timeout: 30m
        webhooks: {}
        #
        # Without effect here:
        #   health.healthProbeBindAddress: "0"
        #     they are /healthz and /readyz
        #   webhook.host: "localhost"
        #     webhooks are served as webhooks says
        #   webhook.port: 9443
        #     webhooks are served as webhooks says
    "##]]
    .assert_eq(&convert(odd).unwrap());
    expect![[r##"
        # From a config.kueue.x-k8s.io/v1beta1 Configuration.
        apiVersion: soroi.dev/v1alpha1
        kind: Configuration
        webhooks: {}
        #
        # Without effect here:
        #   health.healthProbeBindAddress: "0"
        #     they are /healthz and /readyz
        #   waitForPodsReady.enable: false
        #     it is not enabled there
        #   waitForPodsReady.requeuingStrategy.backoffBaseSeconds: 120
        #     it is not enabled there
        #   waitForPodsReady.timeout: "5m"
        #     it is not enabled there
        #   webhook.host: "localhost"
        #     webhooks are served as webhooks says
        #   webhook.port: 9443
        #     webhooks are served as webhooks says
    "##]]
    .assert_eq(&convert(&off).unwrap());
}

#[test]
fn what_is_no_configuration_of_kueue_is_refused() {
    let refused = |text: &str| format!("{:#}\n", convert(text).unwrap_err());
    let mut told = refused("apiVersion: soroi.dev/v1alpha1\nkind: Configuration\n");
    told += &refused("apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Other\n");
    told += &refused("kind: ConfigMap\ndata: {a: x, b: y}\n");
    told += &refused(
        "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nleaderElection: {leaseDuration: 1500ms}\n",
    );
    told += &refused("kind: Namespace\n---\nkind: Secret\n");
    expect![[r#"
        apiVersion: must be config.kueue.x-k8s.io/v1beta1 or v1beta2, not "soroi.dev/v1alpha1"
        kind: must be Configuration, not "Other"
        apiVersion: must be config.kueue.x-k8s.io/v1beta1 or v1beta2, not ""
        Soroi cannot have these settings together: leaderElection.leaseDuration: must be whole seconds, and at least one
        the file must hold one Configuration of config.kueue.x-k8s.io, or the ConfigMap with it; it holds 0
    "#]].assert_eq(&told);
}

#[test]
fn of_several_documents_the_one_with_settings_is_taken() {
    let several = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: kueue-system}}\n---{SHIPPED}");
    assert_eq!(convert(&several).unwrap(), convert(SHIPPED).unwrap());
    assert!(convert(&format!("{several}---{SHIPPED}")).is_err());
}

#[test]
fn what_pods_charge_and_how_long_workloads_stay_is_carried_over() {
    let text = "
        apiVersion: config.kueue.x-k8s.io/v1beta2
        kind: Configuration
        resources:
          quotaCheckStrategy: BlockUndeclared
          excludeResourcePrefixes: [example.com/]
          transformations: [{input: gpu-slice, strategy: Replace, outputs: {credits: 15}}]
          deviceClassMappings: [{name: gpu, deviceClassNames: [gpu.example.com]}]
        objectRetentionPolicies: {workloads: {afterFinished: 1h, afterDeactivatedByKueue: 30m}}
    ";
    expect![[r##"
        # From a config.kueue.x-k8s.io/v1beta2 Configuration.
        apiVersion: soroi.dev/v1alpha1
        kind: Configuration
        objectRetentionPolicies:
          workloads:
            afterDeactivatedByKueue: 30m
            afterFinished: 1h
        resources:
          excludeResourcePrefixes:
          - example.com/
          quotaCheckStrategy: BlockUndeclared
          transformations:
          - input: gpu-slice
            outputs:
              credits: 15
            strategy: Replace
        webhooks: {}
        #
        # Without effect here:
        #   resources.deviceClassMappings: [{"deviceClassNames":["gpu.example.com"],"name":"gpu"}]
        #     devices of resource claims are not charged to quota
    "##]]
    .assert_eq(&convert(text).unwrap());
    let nothing = "
        apiVersion: config.kueue.x-k8s.io/v1beta2
        kind: Configuration
        resources: {}
        objectRetentionPolicies: {workloads: {}}
    ";
    expect![[r#"
        # From a config.kueue.x-k8s.io/v1beta2 Configuration.
        apiVersion: soroi.dev/v1alpha1
        kind: Configuration
        webhooks: {}
        #
        # Without effect here:
        #   objectRetentionPolicies.workloads: {}
        #     they say nothing, so Workloads stay
        #   resources: {}
        #     there is no such setting here
    "#]]
    .assert_eq(&convert(nothing).unwrap());
}
