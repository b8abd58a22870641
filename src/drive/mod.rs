//! THE WORLD: performs effects. It is the only room with a clock, a network, a disk and chance.

pub mod clock;
pub mod egress;
pub mod engine;
pub mod fault;
pub mod files;
pub mod fold;
pub mod model;
pub mod retry;
mod run;
pub mod secret;
pub mod start;
pub mod stop;
pub mod tool;
