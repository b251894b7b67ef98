//! What does somebody see who looks at a wire? Who wrote what, who has read what, and whom trouble met.
//!
//! It is told at the moment at which it happens: a write when it has taken effect, a list when it was
//! heard. Knows requests; never what follows from them.

use std::sync::Arc;

use http::Method;
use serde_json::Value;

/// A process of the product: its replica (empty if there is one alone), and the how many-th of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sender {
    /// The replica.
    pub who: &'static str,
    /// Counts its processes from 1.
    pub number: u64,
}

/// Something that was seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Sight {
    /// Whose end of the wire.
    pub sender: Sender,
    /// The path of the request; empty if it was about none.
    pub path: String,
    /// What it was.
    pub what: What,
}

/// See [`Sight`].
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// The process has begun.
    Began,
    /// The process is dead.
    Crashed,
    /// A write took effect.
    Wrote {
        /// POST, PUT, PATCH or DELETE.
        method: Method,
        /// What it carried.
        body: Value,
    },
    /// The answer to a list was heard.
    Listed,
    /// A request or a watch met trouble.
    Hindered,
}

/// Is told of everything that is seen, at once.
pub type Onlooker = Arc<dyn Fn(&Sight) + Send + Sync>;
