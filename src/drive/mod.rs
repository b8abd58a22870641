//! THE WORLD: performs effects. It is the only room with a clock, a network, a disk and chance.

pub mod clock;
pub mod egress;
pub mod files;
pub mod model;
pub mod retry;
pub mod secret;
pub mod tool;
