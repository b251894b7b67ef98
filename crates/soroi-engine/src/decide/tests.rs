//! Stories: a cluster as text, what happens as text, and what the engine decides as a picture.

mod arriving;
mod behind;
pub(crate) mod board;
mod checks;
mod counts;
mod fair;
mod guarantees;
mod implied;
mod life;
mod neighbours;
mod numbers;
mod preempt;
mod queues;
mod random;
mod ready;
mod restart;
mod roles;
mod rounds;
mod running;
pub(crate) mod script;
mod slices;
mod start;
mod topologies;
mod walked;
