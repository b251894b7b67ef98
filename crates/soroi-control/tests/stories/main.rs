//! Whole stories: the control loop of Soroi on an embedded cluster under simulated time. What is
//! compared is what people see.

mod group;
mod hog;
mod life;
mod policies;
mod reins;
mod story;
mod trouble;
mod undo;
