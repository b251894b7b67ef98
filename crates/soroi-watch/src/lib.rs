//! What changed? A small, sequential list-and-watch loop over kube's raw requests.
