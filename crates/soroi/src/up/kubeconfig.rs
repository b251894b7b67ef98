//! The file that tells clients where the cluster is.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::json;

/// A written kubeconfig. One that was made in a folder of its own goes with this.
#[derive(Debug)]
pub(super) struct Written {
    path: PathBuf,
    folder: Option<PathBuf>,
}

impl Written {
    /// Writes it where it is wanted, readable by this user only: it may hold the token.
    pub(super) fn new(
        wanted: Option<&Path>,
        address: SocketAddr,
        token: Option<&str>,
        authority: Option<&str>,
    ) -> anyhow::Result<Self> {
        let written = match wanted {
            Some(path) => Self { path: std::path::absolute(path)?, folder: None },
            None => {
                let folder = std::env::temp_dir().join(format!("soroi-up-{}", std::process::id()));
                // Made anew: in a folder that is there already somebody else may write.
                fs::DirBuilder::new().mode(0o700).create(&folder).with_context(|| {
                    format!("cannot make {}; name a file by --kubeconfig", folder.display())
                })?;
                Self { path: folder.join("kubeconfig"), folder: Some(folder) }
            }
        };
        let file =
            fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(&written.path);
        let text = text(address, token, authority);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .with_context(|| format!("cannot write {}", written.path.display()))?;
        Ok(written)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            // What cannot be removed is a small file in a folder for such files.
            let _ = fs::remove_file(&self.path);
            let _ = fs::remove_dir(folder);
        }
    }
}

/// A kubeconfig, as JSON, which YAML is.
fn text(address: SocketAddr, token: Option<&str>, authority: Option<&str>) -> String {
    let mut cluster = json!({ "server": format!("http://{address}") });
    if let Some(authority) = authority {
        // The certificate names the address, unless it is that of every interface.
        let host = if address.ip().is_unspecified() { "127.0.0.1".into() } else { address.ip().to_string() };
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        cluster = json!({
            "server": format!("https://{host}:{}", address.port()),
            "certificate-authority-data": base64(authority.as_bytes()),
        });
    }
    let user = token.map_or_else(|| json!({}), |token| json!({ "token": token }));
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "soroi", "cluster": cluster }],
        "users": [{ "name": "soroi", "user": user }],
        "contexts": [{ "name": "soroi", "context": { "cluster": "soroi", "user": "soroi" } }],
        "current-context": "soroi",
    });
    format!("{config:#}\n")
}

/// The one thing of a kubeconfig that is not text.
fn base64(bytes: &[u8]) -> String {
    let encoded = serde_json::to_value(k8s_openapi::ByteString(bytes.to_vec()));
    encoded.ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
