//! Names that are computed from other names, exactly as the programs do that we stand in for.

use sha1::{Digest, Sha1};

/// Longest name of an object.
const NAME_LEN_MAX: usize = 253;
/// Hexadecimal digits of the hash in a Workload's name.
const HASH_LEN: usize = 5;

/// The name of the Workload of a job: `job-<owner name>-<hash>` (Kueue 0.18, `pkg/controller/jobframework`).
///
/// The hash covers kind, group, name and uid of the owner, so that a job that is deleted and
/// created again gets another Workload. Long names are cut before the hash.
pub fn workload(owner_kind: &str, owner_group: &str, owner_name: &str, owner_uid: &str) -> String {
    let mut name = format!("{}-{owner_name}", owner_kind.to_lowercase());
    truncate(&mut name, NAME_LEN_MAX - 1 - HASH_LEN);
    let hash = hex_sha1(&[owner_kind, owner_group, owner_name, owner_uid].join("\n"));
    format!("{name}-{}", &hash[..HASH_LEN])
}

/// The name of the PodGroup that is made for pods that name none: `podgroup-<uid>` of the pod's
/// controller, or of the pod if it has none (Volcano 1.15, `pkg/controllers/podgroup`).
pub fn pod_group(owner_uid: &str) -> String {
    format!("podgroup-{owner_uid}")
}

/// The name of the GangPlan of a gang: its uid. A gang that was created again under the same name
/// has another plan.
pub fn gang_plan(gang_uid: &str) -> String {
    gang_uid.to_owned()
}

fn truncate(name: &mut String, most: usize) {
    if name.len() > most {
        let cut = (0..=most).rev().find(|ix| name.is_char_boundary(*ix)).unwrap_or(0);
        name.truncate(cut);
    }
}

fn hex_sha1(text: &str) -> String {
    Sha1::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a text is a name as namespaces and pod sets have them (RFC 1123 label): 1 to 63 lower-case
/// letters, digits and `-`, with a letter or digit at both ends.
pub fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_are_named_as_kueue_names_them() {
        // Seen on Kueue 0.18.1.
        assert_eq!(
            workload("Job", "batch", "distributed-training-tas", "f16cc799-8764-4313-b61d-474202d31822"),
            "job-distributed-training-tas-ddc9f"
        );
    }

    #[test]
    fn a_job_created_again_gets_another_workload() {
        let name = |uid| workload("Job", "batch", "train", uid);
        assert_ne!(name("a"), name("b"));
    }

    #[test]
    fn long_names_are_cut_before_the_hash() {
        let name = workload("RayCluster", "ray.io", &"x".repeat(253), "uid");
        assert_eq!(name.len(), 253);
        assert!(name.starts_with("raycluster-xxx"));
        assert_eq!(name.as_bytes()[247], b'-');
    }
}
