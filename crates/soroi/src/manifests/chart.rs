//! The Helm chart below `deploy/helm/soroi`: the same objects, with what Helm fills in.
//!
//! The chart's files are written by these tests (`UPDATE_EXPECT=1`), so they cannot differ from what
//! `soroi manifests` prints. That helm makes the same objects of them is shown by a story of the real
//! control plane's tests, since it needs helm.

use expect_test::expect_file;

use super::*;

/// Stand where Helm fills something in. Without spaces, so that YAML breaks no line within.
const NAMESPACE: &str = "the-namespace";
const IMAGE_PLACE: &str = "the-image";
const TEXT: &str = "the-configuration";
/// Fields of the pods that only Helm fills in; left out where its value is empty.
const OPTIONAL: [&str; 3] = ["imagePullSecrets", "nodeSelector", "tolerations"];

/// What `soroi manifests` would print for values that only Helm knows.
fn objects_of(defaults: Defaults) -> Vec<Value> {
    let args =
        Args { namespace: NAMESPACE.into(), image: IMAGE_PLACE.into(), replicas: 2, config: None, defaults };
    let mut wanted = wanted(&args, Map::new()).unwrap();
    wanted.text = TEXT.into();
    objects(&wanted).unwrap()
}

/// One file of templates; none of the objects may hold what Helm would take for its own.
fn template(objects: &[Value]) -> String {
    let text = yaml(objects).unwrap();
    assert!(!text.contains("{{"));
    let whole = |place: &str| format!(": {place}\n");
    text.replace(&whole(IMAGE_PLACE), ": {{ .Values.image | quote }}\n")
        .replace(&whole(NAMESPACE), ": {{ .Release.Namespace | quote }}\n")
        .replace(NAMESPACE, "{{ .Release.Namespace }}")
}

/// What a Deployment's pods are given beyond `soroi manifests`: places for Helm's values.
fn open_pods(objects: &mut [Value]) {
    let deployment = objects.iter_mut().find(|object| is(object, "Deployment")).unwrap();
    let pod = &mut deployment["spec"]["template"]["spec"];
    pod["containers"][0]["resources"] = "the-resources".into();
    for field in OPTIONAL {
        pod[field] = format!("the-{field}").into();
    }
}

/// The same, filled by Helm.
fn filled(mut text: String) -> String {
    for field in OPTIONAL {
        text = text.replace(
            &format!("      {field}: the-{field}\n"),
            &format!(
                "      {{{{- with .Values.{field} }}}}\n      {field}:\n        {{{{- toYaml . | nindent 8 }}}}\n      {{{{- end }}}}\n"
            ),
        );
    }
    text.replace(": the-resources\n", ":\n          {{- toYaml .Values.resources | nindent 10 }}\n")
}

fn is(object: &Value, kind: &str) -> bool {
    object["kind"] == kind
}

#[test]
fn the_program_is_a_template() {
    // Helm makes the namespace, or its user does.
    let mut rest: Vec<Value> = objects_of(Defaults::Policies)
        .into_iter()
        .filter(|object| !is(object, "Namespace") && !is(object, "CustomResourceDefinition"))
        .filter(|object| !object["apiVersion"].as_str().unwrap().starts_with("admissionregistration"))
        .collect();
    open_pods(&mut rest);
    let include = r#"include "soroi.configuration" ."#;
    let digest = program::digest(TEXT);
    let text = template(&rest)
        .replace("\n  replicas: 2\n", "\n  replicas: {{ .Values.replicas }}\n")
        .replace(
            &format!("configuration.yaml: {TEXT}\n"),
            &format!("configuration.yaml: |\n    {{{{- {include} | nindent 4 }}}}\n"),
        )
        .replace(&digest, &format!("{{{{ {include} | sha1sum | quote }}}}"));
    let known = text.matches("{{").count() - text.matches(".Release.Namespace").count();
    assert_eq!(known, 4, "image, replicas, text, digest");
    let text = filled(text);
    assert!(!text.contains("the-"), "every place is filled");
    expect_file!["../../../../deploy/helm/soroi/templates/program.yaml"].assert_eq(&text);
}

#[test]
fn definitions_outlive_the_release() {
    let mut crds = objects_of(Defaults::Policies);
    crds.retain(|object| is(object, "CustomResourceDefinition"));
    for crd in &mut crds {
        // Uninstalling Soroi must not delete the queues of all users.
        crd["metadata"]["annotations"]["helm.sh/resource-policy"] = "keep".into();
    }
    let text = format!("{{{{- if .Values.crds }}}}\n{}{{{{- end }}}}\n", template(&crds));
    expect_file!["../../../../deploy/helm/soroi/templates/crds.yaml"].assert_eq(&text);
}

#[test]
fn admission_is_by_policies_or_by_webhooks() {
    let of = |defaults: Defaults| {
        let mut objects = objects_of(defaults);
        objects.retain(|object| object["apiVersion"].as_str().unwrap().starts_with("admissionregistration"));
        template(&objects)
    };
    let text = format!(
        "{{{{- if eq .Values.defaults \"policies\" }}}}\n{}{{{{- else }}}}\n{}{{{{- end }}}}\n",
        of(Defaults::Policies),
        of(Defaults::Webhooks)
    );
    expect_file!["../../../../deploy/helm/soroi/templates/admission.yaml"].assert_eq(&text);
}

#[test]
fn the_chart_is_of_this_version() {
    let version = env!("CARGO_PKG_VERSION");
    let chart = format!(
        "# Written by the tests of crates/soroi/src/manifests/chart.rs, as are the templates beside it.\n\
         apiVersion: v2\nname: {NAME}\ntype: application\n\
         description: \"Soroi: a gang scheduler for Kubernetes.\"\n\
         version: {version}\nappVersion: {version}\nkubeVersion: \">=1.34.0-0\"\n"
    );
    expect_file!["../../../../deploy/helm/soroi/Chart.yaml"].assert_eq(&chart);
    let deployment =
        objects_of(Defaults::Policies).into_iter().find(|object| is(object, "Deployment")).unwrap();
    let resources =
        yaml(&[deployment["spec"]["template"]["spec"]["containers"][0]["resources"].clone()]).unwrap();
    let resources = resources.trim_start_matches("---\n").replace("\n", "\n  ");
    let values = format!(
        "# How many replicas: one leads, the others stand by.\nreplicas: 2\n\
         image: {IMAGE}\n\
         # Who gives Jobs and pods their defaults: policies (Kubernetes 1.36 and newer) or webhooks.\ndefaults: policies\n\
         # Whether resource definitions belong to the release. They stay when it is uninstalled.\ncrds: true\n\
         # Fields of a soroi.dev/v1alpha1 Configuration, such as placement and timeouts. Addresses and the\n\
         # lease follow from the chart.\nconfiguration: {{}}\n\
         # What each replica asks for. Memory grows with the cluster (README, \"Speed\").\n\
         resources:\n  {}\n\
         # Where replicas may run, beside each on a node of its own where there are enough.\n\
         nodeSelector: {{}}\ntolerations: []\n\
         # Secrets with which the image is pulled, as in pods: [{{name: …}}].\nimagePullSecrets: []\n",
        resources.trim_end()
    );
    expect_file!["../../../../deploy/helm/soroi/values.yaml"].assert_eq(&values);
}
