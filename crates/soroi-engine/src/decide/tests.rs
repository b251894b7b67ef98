//! Stories: a cluster as text, what happens as text, and what the engine decides as a picture.

mod board;
mod counts;
mod implied;
mod life;
mod numbers;
mod queues;
mod random;
mod restart;
mod running;
mod script;
mod start;
