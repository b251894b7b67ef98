//! Replicas that share a Secret, and files that somebody else keeps.

use std::convert::Infallible;
use std::sync::Mutex;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};

use super::*;

/// A Secret as an API server keeps it: versions are checked, `stringData` becomes `data`.
#[derive(Default)]
struct Store {
    secret: Mutex<Option<Value>>,
}

impl Store {
    fn answer(&self, method: &str, body: &[u8]) -> (u16, Value) {
        let mut kept = self.secret.lock().unwrap();
        let conflict = (
            409,
            json!({ "kind": "Status", "code": 409, "status": "Failure", "message": "", "reason": "Conflict" }),
        );
        let version = kept
            .as_ref()
            .map_or(0, |kept| kept["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap());
        let mut sent: Value = serde_json::from_slice(body).unwrap_or_default();
        match (method, kept.as_ref()) {
            ("GET", Some(kept)) => return (200, kept.clone()),
            ("GET", None) => {
                return (
                    404,
                    json!({ "kind": "Status", "code": 404, "status": "Failure", "message": "", "reason": "NotFound" }),
                );
            }
            ("POST", Some(_)) | ("PUT", None) => return conflict,
            ("PUT", Some(kept))
                if kept["metadata"]["resourceVersion"] != sent["metadata"]["resourceVersion"] =>
            {
                return conflict;
            }
            _ => {}
        }
        let texts: BTreeMap<String, String> = serde_json::from_value(sent["stringData"].take()).unwrap();
        sent["data"] = texts
            .into_iter()
            .map(|(key, text)| (key, json!(ByteString(text.into_bytes()))))
            .collect::<serde_json::Map<_, _>>()
            .into();
        sent["metadata"]["resourceVersion"] = (version + 1_u64).to_string().into();
        *kept = Some(sent.clone());
        (200, sent)
    }
}

fn client(store: &Arc<Store>) -> kube::Client {
    let store = Arc::clone(store);
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let store = Arc::clone(&store);
        async move {
            let method = request.method().to_string();
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let (code, answer) = store.answer(&method, &body);
            let body = Full::new(Bytes::from(answer.to_string()));
            Ok::<_, Infallible>(http::Response::builder().status(code).body(body).unwrap())
        }
    });
    kube::Client::new(service, "default")
}

fn replica(store: &Arc<Store>, settings: &Webhooks) -> Certificates {
    Certificates::new(client(store), Clock::real(), settings, "soroi-system").unwrap()
}

fn provider() {
    // Another test may have been faster.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

#[tokio::test]
async fn who_comes_second_takes_what_the_first_one_wrote() {
    provider();
    let store = Arc::new(Store::default());
    let (mut one, mut other) = (replica(&store, &Webhooks::default()), replica(&store, &Webhooks::default()));
    let (first, second) = futures::join!(one.current(), other.current());
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(first.bundle, second.bundle);
    assert_eq!(store.secret.lock().unwrap().as_ref().unwrap()["metadata"]["resourceVersion"], "1");
    let again = one.current().await.unwrap();
    assert!(Arc::ptr_eq(&first.shown, &again.shown), "nothing has changed");
    assert!(first.due > Clock::real().now());
}

#[tokio::test]
async fn a_secret_that_makes_no_sense_is_replaced() {
    provider();
    let store = Arc::new(Store::default());
    let first = replica(&store, &Webhooks::default()).current().await.unwrap();
    // Somebody else's key.
    let other = Arc::new(Store::default());
    replica(&other, &Webhooks::default()).current().await.unwrap();
    let key = other.secret.lock().unwrap().as_ref().unwrap()["data"][KEY].clone();
    store.secret.lock().unwrap().as_mut().unwrap()["data"][KEY] = key;
    let mended = replica(&store, &Webhooks::default()).current().await.unwrap();
    assert_ne!(first.bundle, mended.bundle);
    store.secret.lock().unwrap().as_mut().unwrap()["data"] = json!({ "a": "b" });
    replica(&store, &Webhooks::default()).current().await.unwrap();
}

#[tokio::test]
async fn files_are_read_again() {
    provider();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let files = CertificateFiles {
        certificate: path("tls.crt"),
        key: path("tls.key"),
        authority: Some(path("ca.crt")),
    };
    let settings = Webhooks { certificate_files: Some(files), ..Webhooks::default() };
    let store = Arc::new(Store::default());
    let mut certificates = replica(&store, &settings);
    let refused = certificates.current().await.err().unwrap();
    assert!(format!("{refused:#}").contains("tls.crt"), "{refused:#}");

    let wanted = Wanted { names: vec!["localhost".into()], lifetime: settings.certificate_lifetime };
    let write = |keys: &Keys| {
        std::fs::write(path("tls.crt"), &keys.certificate).unwrap();
        std::fs::write(path("tls.key"), &keys.key).unwrap();
        std::fs::write(path("ca.crt"), keys.bundle()).unwrap();
    };
    let keys = Keys::new(&wanted, Clock::real().now()).unwrap();
    write(&keys);
    let first = certificates.current().await.unwrap();
    assert_eq!(first.bundle, Some(keys.bundle()));
    assert!(Arc::ptr_eq(&first.shown, &certificates.current().await.unwrap().shown));
    write(&Keys::new(&wanted, Clock::real().now()).unwrap());
    assert!(!Arc::ptr_eq(&first.shown, &certificates.current().await.unwrap().shown));
    std::fs::write(path("tls.key"), keys.key).unwrap();
    std::fs::write(path("tls.crt"), format!("{}\n", std::fs::read_to_string(path("tls.crt")).unwrap()))
        .unwrap();
    let refused = certificates.current().await.err().unwrap();
    assert!(format!("{refused:#}").contains("belong together"), "{refused:#}");
    assert!(store.secret.lock().unwrap().is_none(), "no Secret is needed");
}
