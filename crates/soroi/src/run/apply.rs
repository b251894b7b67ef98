//! Objects of ours on the cluster: mostly by server-side apply, as the field manager `soroi`.
//!
//! Knows paths and patches; never what the objects are for.

use anyhow::Context as _;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Creates the object at `path`, or brings it to what it should be; what others have added stays.
pub(crate) async fn apply(client: &kube::Client, path: &str, object: &Value) -> anyhow::Result<Value> {
    let request = http::Request::patch(format!("{path}?fieldManager=soroi&force=true"))
        .header(http::header::CONTENT_TYPE, "application/apply-patch+yaml")
        .body(object.to_string().into_bytes())?;
    client.request(request).await.with_context(|| format!("cannot apply {path}"))
}

/// What is at `path`; `None` if nothing is.
pub(crate) async fn get<T: DeserializeOwned>(client: &kube::Client, path: &str) -> kube::Result<Option<T>> {
    let request = http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
    match client.request(request).await {
        Ok(found) => Ok(Some(found)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sends a body that is no apply; the answer is an object.
pub(crate) async fn send(
    client: &kube::Client,
    method: &str,
    path: &str,
    content: &str,
    body: &Value,
) -> kube::Result<Value> {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::CONTENT_TYPE, content)
        .body(body.to_string().into_bytes())
        .map_err(kube::Error::HttpError)?;
    client.request(request).await
}
