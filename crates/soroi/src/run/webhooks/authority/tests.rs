//! Rotation, step by step.

use std::collections::BTreeSet;
use std::sync::Arc;

use expect_test::expect;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};

use super::*;

const HOUR: i64 = 3600;

fn wanted() -> Wanted {
    Wanted { names: vec!["soroi.soroi-system.svc".into()], lifetime: Duration::from_hours(3) }
}

fn at(hours: i64) -> Timestamp {
    Timestamp::from_second(2_000_000_000 + hours * HOUR).unwrap()
}

/// The clock of who connects.
#[derive(Debug)]
struct Fixed(Timestamp);

impl rustls::time_provider::TimeProvider for Fixed {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(self.0.as_second().unsigned_abs())))
    }
}

/// Whether who knows `bundle` trusts what `keys` show, under this name.
fn trusts(bundle: &str, keys: &Keys, name: &str, now: Timestamp) -> bool {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(authority.unwrap()).unwrap();
    }
    let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.time_provider = Arc::new(Fixed(now));
    let chain = CertificateDer::pem_slice_iter(keys.certificate.as_bytes()).map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(keys.key.as_bytes()).unwrap();
    let server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(Arc::new(client), name).unwrap();
    let mut server = ServerConnection::new(Arc::new(server)).unwrap();
    for _ in 0..4 {
        let mut wire = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut wire).unwrap();
        }
        server.read_tls(&mut wire.as_slice()).unwrap();
        server.process_new_packets().unwrap();
        let mut wire = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut wire).unwrap();
        }
        client.read_tls(&mut wire.as_slice()).unwrap();
        if client.process_new_packets().is_err() {
            return false;
        }
    }
    !client.is_handshaking()
}

#[test]
fn what_is_new_is_trusted_by_who_knows_the_authority() {
    let keys = Keys::new(&wanted(), at(0)).unwrap();
    let name = "soroi.soroi-system.svc";
    assert!(trusts(&keys.bundle(), &keys, name, at(0)));
    assert!(trusts(&keys.bundle(), &keys, name, at(2)));
    assert!(!trusts(&keys.bundle(), &keys, "other.soroi-system.svc", at(0)));
    assert!(!trusts(&keys.bundle(), &keys, name, at(4)), "it expires");
    let others = Keys::new(&wanted(), at(0)).unwrap();
    assert!(!trusts(&others.bundle(), &keys, name, at(0)));
    assert_eq!(keys.next(&wanted(), at(0)).unwrap(), None);
    assert_eq!(keys.due(&wanted()), at(2));
}

#[test]
fn an_address_is_a_name_too() {
    let wanted = Wanted { names: vec!["127.0.0.1".into()], ..wanted() };
    let keys = Keys::new(&wanted, at(0)).unwrap();
    assert!(trusts(&keys.bundle(), &keys, "127.0.0.1", at(0)));
}

/// For 60 hours somebody looks every hour. Whoever knows the bundle of the step before trusts what is
/// shown, and whoever still shows what the step before did is trusted by who knows the new bundle.
#[test]
fn replicas_never_have_to_change_at_the_same_moment() {
    let mut keys = Keys::new(&wanted(), at(0)).unwrap();
    let name = "soroi.soroi-system.svc";
    let mut told = String::new();
    let mut authorities = BTreeSet::new();
    for hour in 0..60 {
        let mut steps = 0;
        while let Some(next) = keys.next(&wanted(), at(hour)).unwrap() {
            assert!(trusts(&keys.bundle(), &next, name, at(hour)), "hour {hour}");
            assert!(next.certificate == keys.certificate || trusts(&next.bundle(), &next, name, at(hour)));
            if next.facts.authorities.len() != keys.facts.authorities.len() {
                told += &format!("hour {hour}: {} authorities\n", next.facts.authorities.len());
            }
            keys = next;
            steps += 1;
            assert!(steps < 3, "it comes to rest");
        }
        assert!(trusts(&keys.bundle(), &keys, name, at(hour)), "hour {hour}");
        authorities.insert(keys.facts.authorities[0].name.clone());
    }
    expect![[r#"
        hour 20: 2 authorities
    "#]]
    .assert_eq(&told);
    assert_eq!(authorities.len(), 3);
}

#[test]
fn after_a_long_absence_all_is_new() {
    let old = Keys::new(&wanted(), at(0)).unwrap();
    let step = old.next(&wanted(), at(1000)).unwrap().unwrap();
    assert_eq!(step.facts.authorities.len(), 1, "what has expired is forgotten");
    let step = step.next(&wanted(), at(1000)).unwrap().unwrap();
    assert!(trusts(&step.bundle(), &step, "soroi.soroi-system.svc", at(1000)));
    assert_eq!(step.next(&wanted(), at(1000)).unwrap(), None);
}

#[test]
fn another_name_needs_another_certificate() {
    let keys = Keys::new(&wanted(), at(0)).unwrap();
    let elsewhere = Wanted { names: vec!["localhost".into()], ..wanted() };
    let next = keys.next(&elsewhere, at(0)).unwrap().unwrap();
    assert!(trusts(&keys.bundle(), &next, "localhost", at(0)));
    assert_eq!(next.next(&elsewhere, at(0)).unwrap(), None);
}
