//! The rest of an embedded cluster: kubelets, Job controller, garbage collection, node lifecycle and a one-pod-at-a-time scheduler.
