//! An unmodified kubectl against `soroi up`: command by command the same as against a real API server,
//! and what is told in pages.

mod article;
mod informer;
mod normal;
mod page;
mod secure;
mod steps;
mod twin;
mod up;
