//! What do the objects look like? Custom resources, labels, conditions and exact quantities.
//!
//! The kinds that Soroi serves as Rust types: Kueue's ([`kueue`]), Volcano's ([`volcano`]) and its
//! own commit record ([`plan`]). Their CRDs are generated from these types ([`crds`]). Beside them
//! stand the words that make objects work together: labels, annotations, gates and finalizers
//! ([`labels`]), conditions ([`conditions`]) and names ([`names`]), and how labels are spelt ([`syntax`]).
//!
//! This crate knows shapes and words. It must never know what is decided, when, or by whom, and it
//! talks to nobody.

// One `kube` attribute per kind lists many printer columns, each with a name, a type and a path.
#![allow(clippy::duplicated_attributes)]

pub mod conditions;
pub mod crds;
pub mod kueue;
pub mod labels;
pub mod names;
pub mod plan;
pub mod syntax;
pub mod volcano;

mod compress;
mod quantity;
mod schema;
mod text_enum;

pub use quantity::{Quantities, Quantity};
pub use soroi_quantity::ParseError as QuantityError;
pub use text_enum::UnknownWord;
