//! The client of HTTP servers: of models, of `http` actions, of MCP servers, and of credentials. A program without the feature
//! `http` has none, and sends no request: all that would is compiled, and fails when it begins.

#[cfg(not(feature = "http"))]
mod absent;
#[cfg(feature = "http")]
mod present;
#[cfg(feature = "http")]
mod tls;

#[cfg(not(feature = "http"))]
pub use self::absent::{Client, Error, Request, Response, guarded, is_tls_fault, of_models};
#[cfg(feature = "http")]
pub use self::present::{Client, Error, Request, Response, guarded, is_tls_fault, of_models};

/// Whether the program has a client.
pub const IS_BUILT_IN: bool = cfg!(feature = "http");

/// Why a program without a client sends nothing.
pub const NOT_BUILT_IN: &str = "this program sends no HTTP requests: build it with the feature `http` of loopctl";
