//! Soroi: a gang scheduler for Kubernetes.
fn main() {}
