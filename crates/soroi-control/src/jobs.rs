//! How do the kinds of jobs tie in? What each kind wants of us beside the decisions about gangs.

pub(crate) mod batch;
pub(crate) mod podgroup;
