//! Admission: stateless defaults and validation, the same on every replica.
