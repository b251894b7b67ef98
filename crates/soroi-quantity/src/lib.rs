//! Exact Kubernetes quantities: integers in base units, rounded and printed as Kubernetes does.
