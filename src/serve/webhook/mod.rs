//! Deliveries of other services that start workflows: how they are signed, and what is read of them.

mod delivery;
mod scheme;
mod signature;
#[cfg(test)]
mod tests;

pub use delivery::{AddressTest, address_test, body_of, headers_of, id_of, is_form};
pub use scheme::SignatureScheme;
pub use signature::{NotVerified, REPLAY_WINDOW_SECONDS, verify};
