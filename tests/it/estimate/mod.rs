//! `loopctl estimate`: the worst case of a run before it starts. No run in any world exceeds it.

mod command;
mod real_runs;
mod worlds;
