//! On an address that others can reach: a token, and TLS so that it stays one.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use jiff::Timestamp;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use soroi_apiserver::serve::{Door, accept};
use soroi_clock::Clock;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Shorter ones can be guessed.
const TOKEN_BYTES_MIN: usize = 16;
/// Until a connection is encrypted.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);
/// A cluster that lives in memory is not kept for longer.
const DAYS: i64 = 365;

/// Reads the token.
pub(super) fn token(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let token = text.trim();
    let visible = token.bytes().all(|byte| byte.is_ascii_graphic());
    ensure!(
        token.len() >= TOKEN_BYTES_MIN && visible,
        "{}: a token has at least {TOKEN_BYTES_MIN} letters and digits, in one line",
        path.display()
    );
    Ok(token.to_owned())
}

/// A certificate that signs itself, for this address and this machine; as PEM, and ready for use.
pub(super) fn certificate(address: IpAddr, now: Timestamp) -> anyhow::Result<(String, TlsAcceptor)> {
    crate::run::install_crypto()?;
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), address.to_string()];
    let mut params = CertificateParams::new(names)?;
    let day = |days: i64| time::OffsetDateTime::from_unix_timestamp(now.as_second() + days * 86_400);
    params.not_before = day(-1)?;
    params.not_after = day(DAYS)?;
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)?;
    Ok((certificate.pem(), TlsAcceptor::from(Arc::new(config))))
}

/// Serves everybody who connects, for ever.
pub(super) async fn serve(listener: TcpListener, door: Door, acceptor: TlsAcceptor, clock: Clock) {
    accept(listener, clock, |stream| {
        let (acceptor, door) = (acceptor.clone(), door.clone());
        async move {
            // The cluster's clock may run fast; people's hands do not.
            let handshake = Clock::real().timeout(HANDSHAKE_MAX, acceptor.accept(stream)).await;
            match handshake {
                Ok(Ok(stream)) => door.serve(stream).await,
                _ => Ok(()),
            }
        }
    })
    .await;
}
