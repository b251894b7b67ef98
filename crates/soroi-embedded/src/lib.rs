//! A whole cluster in one process: API server, nodes, controllers and Soroi, under one clock.

pub mod table;
