//! Where the certificate is from: a Secret that all replicas share, or files that somebody else
//! keeps.
//!
//! Every replica may write the Secret; whoever comes second takes what the first one wrote. Knows
//! Secrets and files. Must never know what is served under the certificate.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use soroi_clock::Clock;

use super::authority::{Keys, Wanted};
use crate::run::apply::{get, send};
use crate::run::config::{CertificateFiles, Webhooks};

/// The keys of the Secret's data; the first two as in `kubernetes.io/tls`.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const AUTHORITY_KEY: &str = "ca.key";
const FACTS: &str = "facts.json";
/// How often another replica may be the first before we give up for a while.
const ROUNDS_MAX: usize = 8;

/// What is in force.
pub(super) struct Current {
    /// For the listener. The same one as long as nothing changes.
    pub(super) shown: Arc<ServerConfig>,
    /// For those who connect, PEM; none if they are told by somebody else.
    pub(super) bundle: Option<String>,
    /// When something has to be done.
    pub(super) due: Timestamp,
}

/// A source of certificates.
pub(super) struct Certificates {
    client: kube::Client,
    clock: Clock,
    files: Option<CertificateFiles>,
    wanted: Wanted,
    namespace: String,
    secret: String,
    /// What was made of which certificate.
    made: Option<(String, Arc<ServerConfig>)>,
}

impl Certificates {
    pub(super) fn new(
        client: kube::Client,
        clock: Clock,
        settings: &Webhooks,
        namespace: &str,
    ) -> anyhow::Result<Self> {
        let wanted = Wanted { names: settings.names(namespace)?, lifetime: settings.certificate_lifetime };
        Ok(Self {
            client,
            clock,
            files: settings.certificate_files.clone(),
            wanted,
            namespace: namespace.to_owned(),
            secret: settings.secret.clone(),
            made: None,
        })
    }

    /// The certificate in force, made or renewed if it has to be. At most one step is taken: call
    /// again when it is due.
    pub(super) async fn current(&mut self) -> anyhow::Result<Current> {
        if let Some(files) = &self.files {
            let read = |path: &Path| {
                std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
            };
            let (certificate, key) = (read(&files.certificate)?, read(&files.key)?);
            let bundle = files.authority.as_deref().map(read).transpose()?;
            let shown = self.shown(&certificate, &key)?;
            return Ok(Current { shown, bundle, due: Timestamp::MAX });
        }
        for _ in 0..ROUNDS_MAX {
            let stored = self.stored().await?;
            let now = self.clock.now();
            let usable = stored.as_ref().and_then(|stored| stored.keys.as_ref());
            let usable = usable.filter(|keys| server(&keys.certificate, &keys.key).is_ok());
            let next = match usable {
                Some(keys) => keys.next(&self.wanted, now)?,
                None => Some(Keys::new(&self.wanted, now)?),
            };
            let keys = match (usable, next) {
                (Some(keys), None) => keys.clone(),
                (_, next) => {
                    let next = next.context("without keys there are new ones")?;
                    if !self.store(stored.as_ref(), &next).await? {
                        continue;
                    }
                    tracing::info!(until = %next.facts.until, "the webhooks' certificate was renewed");
                    next
                }
            };
            let shown = self.shown(&keys.certificate, &keys.key)?;
            return Ok(Current { shown, bundle: Some(keys.bundle()), due: keys.due(&self.wanted) });
        }
        bail!("the Secret {}/{} changes all the time", self.namespace, self.secret)
    }

    fn shown(&mut self, certificate: &str, key: &str) -> anyhow::Result<Arc<ServerConfig>> {
        let same = self.made.as_ref().filter(|(of, _)| of == certificate);
        if let Some((_, shown)) = same {
            return Ok(Arc::clone(shown));
        }
        let shown = server(certificate, key)?;
        self.made = Some((certificate.to_owned(), Arc::clone(&shown)));
        Ok(shown)
    }

    fn path(&self) -> String {
        format!("/api/v1/namespaces/{}/secrets", self.namespace)
    }

    async fn stored(&self) -> anyhow::Result<Option<Stored>> {
        let path = format!("{}/{}", self.path(), self.secret);
        let secret: Option<Value> = get(&self.client, &path).await.context("cannot read the Secret")?;
        Ok(secret.map(|secret| Stored {
            version: secret["metadata"]["resourceVersion"].clone(),
            keys: keys(&secret["data"]),
        }))
    }

    /// Writes the Secret; whether nobody else was faster.
    async fn store(&self, stored: Option<&Stored>, keys: &Keys) -> anyhow::Result<bool> {
        let facts = serde_json::to_string(&keys.facts)?;
        let mut secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {
                "name": self.secret, "namespace": self.namespace,
                "labels": super::objects::labels(),
            },
            "stringData": {
                CERTIFICATE: keys.certificate, KEY: keys.key,
                AUTHORITY_KEY: keys.authority_key, FACTS: facts,
            },
        });
        let (method, path) = match stored {
            None => ("POST", self.path()),
            Some(stored) => {
                secret["metadata"]["resourceVersion"] = stored.version.clone();
                ("PUT", format!("{}/{}", self.path(), self.secret))
            }
        };
        match send(&self.client, method, &path, "application/json", &secret).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(error) => Err(error).context("cannot write the Secret"),
        }
    }
}

/// The Secret as it was read.
struct Stored {
    version: Value,
    /// None if it does not hold what it should.
    keys: Option<Keys>,
}

fn keys(data: &Value) -> Option<Keys> {
    let data: BTreeMap<String, ByteString> = serde_json::from_value(data.clone()).ok()?;
    let text = |key: &str| String::from_utf8(data.get(key)?.0.clone()).ok();
    Some(Keys {
        facts: serde_json::from_str(&text(FACTS)?).ok()?,
        authority_key: text(AUTHORITY_KEY)?,
        certificate: text(CERTIFICATE)?,
        key: text(KEY)?,
    })
}

/// What a listener needs of a certificate.
///
/// # Errors
/// They are unreadable, or do not belong together.
fn server(certificate: &str, key: &str) -> anyhow::Result<Arc<ServerConfig>> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate.as_bytes())
        .collect::<Result<_, _>>()
        .context("the certificate is unreadable")?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).context("the key is unreadable")?;
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .context("certificate and key do not belong together")?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests;
