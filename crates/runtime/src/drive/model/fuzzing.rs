//! Replies without a network, for the fuzz targets alone: they exist in builds with `--cfg fuzzing` only.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::failure::Peer;
use super::reply::StreamedReply;
use super::sse::SseDecoder;
use super::{protocol_of, surrogate_halves, take_event};
use crate::drive::secret::Vault;
use loopctl_lang::policy::provider::Provider;

/// Reads a stream in pieces of `size` bytes, and a whole answer, in the words of each protocol.
pub fn stream(bytes: &[u8], size: usize) {
    let vault = Arc::new(Vault::new(BTreeMap::new(), Path::new("/")));
    let peer = Peer { name: "fuzz:80".to_owned(), vault };
    for protocol in Provider::ALL.iter().copied().map(protocol_of) {
        let (mut decoder, mut pieces) = (SseDecoder::default(), StreamedReply::default());
        let mut take = |data: &[u8]| take_event(protocol, &peer, &mut pieces, data).map(drop);
        let read = bytes.chunks(size).try_for_each(|part| decoder.push(part, &mut take));
        drop(read.and_then(|()| decoder.finish(&mut take)));
        drop(pieces.whole(&peer));
        drop(protocol.read(&peer, surrogate_halves::readable(bytes).as_bytes()));
    }
}
