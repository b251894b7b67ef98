//! `caBundle`: by it the API server knows us. Kept as it should be in every configuration of ours.
//!
//! Knows where the field stands. What others have written beside it stays.

use anyhow::Context as _;
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::objects;
use crate::run::apply::{get, send};
use crate::run::config::Webhooks;

pub(super) struct Upkeep {
    client: kube::Client,
    /// How the API server reaches us, without the path.
    client_config: Value,
}

impl Upkeep {
    pub(super) fn new(client: kube::Client, settings: &Webhooks, namespace: &str) -> Self {
        Self { client, client_config: objects::client_config(settings, namespace, "") }
    }

    /// Writes the bundle (PEM) wherever it is missing or another.
    pub(super) async fn publish(&self, bundle: &str) -> anyhow::Result<()> {
        let bundle = json!(ByteString(bundle.as_bytes().to_vec()));
        for path in objects::configured() {
            let found: Option<Value> =
                get(&self.client, &path).await.with_context(|| format!("cannot read {path}"))?;
            // What is not installed needs no upkeep.
            let Some(object) = found else { continue };
            let patch = patch(&object, &self.client_config, &bundle);
            if patch.is_empty() {
                continue;
            }
            let content = "application/json-patch+json";
            send(&self.client, "PATCH", &path, content, &Value::from(patch))
                .await
                .with_context(|| format!("cannot write the caBundle of {path}"))?;
            tracing::info!(path, "the API server was told by whom our certificate is signed");
        }
        Ok(())
    }
}

/// The operations that put the bundle where `client_config` is meant; none if it is there.
fn patch(object: &Value, client_config: &Value, bundle: &Value) -> Vec<Value> {
    let webhooks = object["webhooks"].as_array().into_iter().flatten().enumerate();
    let mut places: Vec<(String, &Value)> =
        webhooks.map(|(ix, one)| (format!("/webhooks/{ix}/clientConfig"), &one["clientConfig"])).collect();
    places.push((
        "/spec/conversion/webhook/clientConfig".into(),
        &object["spec"]["conversion"]["webhook"]["clientConfig"],
    ));
    let stale = |(_, there): &(String, &Value)| is_ours(there, client_config) && there["caBundle"] != *bundle;
    let stale = places.into_iter().filter(stale);
    let mut patch: Vec<Value> = stale
        .map(|(path, _)| json!({ "op": "add", "path": format!("{path}/caBundle"), "value": bundle }))
        .collect();
    if !patch.is_empty() {
        // The places are counted: nobody may have moved them meanwhile.
        let version = &object["metadata"]["resourceVersion"];
        patch.insert(0, json!({ "op": "test", "path": "/metadata/resourceVersion", "value": version }));
    }
    patch
}

fn is_ours(there: &Value, client_config: &Value) -> bool {
    let service = |config: &Value| ["namespace", "name"].map(|field| config["service"][field].clone());
    match client_config["url"].as_str() {
        Some(url) => there["url"].as_str().is_some_and(|there| there.starts_with(url)),
        None => !there["service"].is_null() && service(there) == service(client_config),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn only_what_is_ours_and_stale_is_written() {
        let ours = json!({ "service": { "namespace": "soroi-system", "name": "soroi" } });
        let at = |namespace: &str, bundle: Value| {
            json!({ "clientConfig": {
                "service": { "namespace": namespace, "name": "soroi", "path": "/validate" }, "caBundle": bundle,
            } })
        };
        let object = json!({
            "metadata": { "resourceVersion": "7" },
            "webhooks": [at("other", json!(null)), at("soroi-system", json!("old")), at("soroi-system", json!("new"))],
        });
        expect![[r#"[{"op":"test","path":"/metadata/resourceVersion","value":"7"},{"op":"add","path":"/webhooks/1/clientConfig/caBundle","value":"new"}]"#]]
            .assert_eq(&Value::from(patch(&object, &ours, &json!("new"))).to_string());
        let object = json!({ "webhooks": [at("soroi-system", json!("new"))], "spec": {} });
        assert_eq!(patch(&object, &ours, &json!("new")), Vec::<Value>::new());
        let url = json!({ "url": "https://127.0.0.1:9443" });
        let object = json!({
            "metadata": {},
            "spec": { "conversion": { "webhook": { "clientConfig": { "url": "https://127.0.0.1:9443/convert" } } } },
        });
        assert_eq!(patch(&object, &url, &json!("new")).len(), 2);
        assert_eq!(patch(&object, &ours, &json!("new")).len(), 0);
    }
}
