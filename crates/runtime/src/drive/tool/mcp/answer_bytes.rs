//! The bytes of an answer of a server: it may send more than anybody wants.

use crate::drive::http_client::Response;

/// The bytes of an answer, up to a limit, and whether these are all.
///
/// # Errors
/// Why it breaks off.
pub(super) async fn bytes(mut response: Response, limit: usize) -> Result<(Vec<u8>, bool), String> {
    let mut read = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| error.without_url().to_string())? {
        let room = limit.saturating_sub(read.len());
        read.extend(chunk.iter().take(room));
        if chunk.len() > room {
            return Ok((read, false));
        }
    }
    Ok((read, true))
}
