//! Replies without a network, for the fuzz targets alone: they exist in builds with `--cfg fuzzing` only.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::failure::Peer;
use super::reply::Pieces;
use super::sse::Decoder;
use super::{anthropic, openai};
use crate::drive::secret::Vault;

/// Reads a stream in pieces of so many bytes, and a whole answer, in the words of each protocol.
pub fn stream(bytes: &[u8], size: usize) {
    let vault = Arc::new(Vault::new(BTreeMap::new(), Path::new("/")));
    let peer = Peer { name: "fuzz:80".to_owned(), vault };
    for piece in [openai::piece, anthropic::piece] {
        let (mut decoder, mut pieces) = (Decoder::default(), Pieces::default());
        let mut take = |data: &[u8]| piece(&peer, &mut pieces, data, None).map(drop);
        let read = bytes.chunks(size).try_for_each(|part| decoder.push(part, &mut take));
        drop(read.and_then(|()| decoder.finish(&mut take)));
        drop(pieces.whole());
    }
    drop((openai::read(&peer, bytes), anthropic::read(&peer, bytes)));
}
