//! A small Kubernetes API server in memory, as one tower service.
