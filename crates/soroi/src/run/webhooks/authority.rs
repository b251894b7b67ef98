//! A certificate authority of our own, and the one certificate that it signs.
//!
//! Knows certificates and when they must be replaced; what is replaced overlaps with what comes after
//! it, so that replicas need not change at the same moment. Must never know where they are kept.

use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde::{Deserialize, Serialize};

/// An authority outlives this many of its certificates.
const AUTHORITY_LIVES: u32 = 10;

/// All that replicas share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) facts: Facts,
    /// The private key of the newest authority, PEM.
    pub(super) authority_key: String,
    /// PEM.
    pub(super) certificate: String,
    /// PEM.
    pub(super) key: String,
}

/// What the certificates say of themselves, so that nobody has to parse them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Facts {
    /// Newest first; it signs what is signed next.
    pub(super) authorities: Vec<Authority>,
    /// The names that the certificate is for.
    pub(super) names: Vec<String>,
    /// When the certificate expires.
    pub(super) until: Timestamp,
}

/// One authority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Authority {
    pub(super) name: String,
    pub(super) until: Timestamp,
    /// PEM.
    pub(super) certificate: String,
}

/// What is wanted of a certificate.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) names: Vec<String>,
    /// How long it is valid. It is replaced when a third of that is left.
    pub(super) lifetime: Duration,
}

impl Keys {
    /// Everything new.
    pub(super) fn new(wanted: &Wanted, now: Timestamp) -> anyhow::Result<Self> {
        let (authority, authority_key) = authority(wanted, now)?;
        let facts = Facts { authorities: vec![authority], names: Vec::new(), until: now };
        let unsigned = Self { facts, authority_key, certificate: String::new(), key: String::new() };
        unsigned.signed(wanted, now)
    }

    /// What has to come next: a new authority beside the old one, or a certificate by the newest
    /// authority; nothing if all is well. One step at a time, so that an authority is known
    /// everywhere before something is signed by it.
    pub(super) fn next(&self, wanted: &Wanted, now: Timestamp) -> anyhow::Result<Option<Self>> {
        if now >= self.authority_due(wanted) {
            let (authority, authority_key) = authority(wanted, now)?;
            let mut next = Self { authority_key, ..self.clone() };
            next.facts.authorities.retain(|old| old.until > now);
            next.facts.authorities.insert(0, authority);
            return Ok(Some(next));
        }
        if now >= self.certificate_due(wanted) || self.facts.names != wanted.names {
            return self.signed(wanted, now).map(Some);
        }
        Ok(None)
    }

    /// When something has to come next.
    pub(super) fn due(&self, wanted: &Wanted) -> Timestamp {
        self.authority_due(wanted).min(self.certificate_due(wanted))
    }

    fn authority_due(&self, wanted: &Wanted) -> Timestamp {
        let until = self.facts.authorities.first().map_or(Timestamp::MIN, |newest| newest.until);
        earlier(until, wanted.lifetime.saturating_mul(AUTHORITY_LIVES) / 3)
    }

    fn certificate_due(&self, wanted: &Wanted) -> Timestamp {
        earlier(self.facts.until, wanted.lifetime / 3)
    }

    /// All authorities that may have signed what is shown somewhere.
    pub(super) fn bundle(&self) -> String {
        self.facts.authorities.iter().map(|authority| authority.certificate.as_str()).collect()
    }

    fn signed(&self, wanted: &Wanted, now: Timestamp) -> anyhow::Result<Self> {
        let newest = self.facts.authorities.first().context("there is no authority")?;
        let signer = KeyPair::from_pem(&self.authority_key).context("the authority's key is unreadable")?;
        let issuer = Issuer::new(authority_params(&newest.name, newest.until)?, signer);
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(wanted.names.clone())?;
        let until = now.saturating_add(wanted.lifetime).unwrap_or(Timestamp::MAX).min(newest.until);
        params.not_after = moment(until)?;
        // A name of its own: some take a certificate that is called as its issuer for self-signed.
        params.distinguished_name.push(DnType::CommonName, "soroi-webhooks");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &issuer)?.pem();
        let facts = Facts { until, names: wanted.names.clone(), ..self.facts.clone() };
        let authority_key = self.authority_key.clone();
        Ok(Self { facts, authority_key, certificate, key: key.serialize_pem() })
    }
}

fn authority(wanted: &Wanted, now: Timestamp) -> anyhow::Result<(Authority, String)> {
    let name = format!("soroi-webhooks-authority-{}", now.as_second());
    let until = now.saturating_add(wanted.lifetime.saturating_mul(AUTHORITY_LIVES));
    let until = until.unwrap_or(Timestamp::MAX);
    let key = KeyPair::generate()?;
    let certificate = authority_params(&name, until)?.self_signed(&key)?.pem();
    Ok((Authority { name, until, certificate }, key.serialize_pem()))
}

fn authority_params(name: &str, until: Timestamp) -> anyhow::Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_after = moment(until)?;
    Ok(params)
}

fn moment(time: Timestamp) -> anyhow::Result<time::OffsetDateTime> {
    // Beyond the year 9999 there is no way to write it.
    Ok(time::OffsetDateTime::from_unix_timestamp(time.as_second().min(253_370_764_800))?)
}

fn earlier(time: Timestamp, span: Duration) -> Timestamp {
    time.saturating_sub(span).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests;
