//! What do the objects look like? Custom resources, labels, conditions and exact quantities.
