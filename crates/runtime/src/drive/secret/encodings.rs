//! The encodings of a secret that are searched for, by the way in which a text is read.

use std::collections::BTreeSet;
use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::decode::decoded;

/// A secret with more bytes than this is searched for in its common encodings only, so that a large key does
/// not cost hundreds of megabytes.
const LARGE: usize = 4096;

/// The fewest characters of base32 that are searched for: base32 ignores case and spaces, so that fewer would
/// match prose.
const MIN_BASE32: usize = 7;

/// The layers of escapes around a secret that are removed: a URL in a JSON text in a JSON text in a
/// model's reply has four.
pub const LAYERS: usize = 4;

/// The layers of escapes that a secret may contain itself (`a%2541` has two). Each costs a pattern, and a pass
/// over a text that has that many.
const OWN_LAYERS: usize = 8;

/// The patterns, by the way in which a text is read. Escapes do not matter here: a text is searched after each
/// layer of them is decoded.
#[derive(Default)]
pub struct Spellings {
    /// As it is, and after each layer of its own escapes is removed.
    pub plain: BTreeSet<Vec<u8>>,
    /// How many layers of escapes the secret itself contains.
    pub own_layers: usize,
    /// Hexadecimal digits in lower case, with a 0 before each pair or not (`0x41, 0x42`).
    pub hex: BTreeSet<Vec<u8>>,
    /// Base64 of the common alphabet, without padding.
    pub base64: BTreeSet<Vec<u8>>,
    /// Base32 in upper case, without padding.
    pub base32: BTreeSet<Vec<u8>>,
}

impl Spellings {
    pub fn of(secret: &str) -> Self {
        let mut all = Self::default();
        all.read_plain(secret);
        if secret.len() > LARGE {
            all.encode(secret.as_bytes());
            return all;
        }
        // The encoded text may be JSON or UTF-16 with the secret in it.
        let written = serde_json::to_string(secret).unwrap_or_default();
        let inner = written.trim_start_matches('"').strip_suffix('"').unwrap_or_default();
        let little: Vec<u8> = secret.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = secret.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for bytes in [secret.as_bytes(), inner.as_bytes(), &little, &big] {
            all.encode(bytes);
            all.hex.insert(hex(bytes, "0"));
            base32(bytes, &mut all.base32);
        }
        all
    }

    /// Decoding a text also decodes the escapes that the secret contains itself. An entity at its end may lack
    /// its `;`: it is complete when a letter follows, and may continue at the end of a text.
    fn read_plain(&mut self, secret: &str) {
        for after in ["", "z"] {
            let mut text = format!("{secret}{after}").into_bytes();
            let mut layers = 0_usize;
            loop {
                let own = text.strip_suffix(after.as_bytes()).unwrap_or(&text);
                // A blank pattern would match every text.
                let shown = own.iter().filter(|byte| byte.is_ascii_graphic() || !byte.is_ascii()).count();
                if layers == 0 || shown >= super::MIN_SCRUBBED {
                    self.plain.insert(own.to_vec());
                }
                let Some(view) = decoded(&text, None).filter(|_| layers < OWN_LAYERS) else { break };
                text = view.bytes;
                layers = layers.saturating_add(1);
            }
            self.own_layers = self.own_layers.max(layers);
        }
    }

    fn encode(&mut self, bytes: &[u8]) {
        self.hex.insert(hex(bytes, ""));
        base64(bytes, &mut self.base64);
    }
}

fn hex(bytes: &[u8], before: &str) -> Vec<u8> {
    let mut out = String::with_capacity(bytes.len() * 3);
    for byte in bytes {
        // Writing to a String can't fail.
        let _ = write!(out, "{before}{byte:02x}");
    }
    out.into_bytes()
}

/// The whole encoding. For a secret inside of a longer encoded text: the characters that depend on the secret
/// alone, for each of the three offsets in a group of bytes at which it may begin.
fn base64(bytes: &[u8], all: &mut BTreeSet<Vec<u8>>) {
    all.insert(STANDARD_NO_PAD.encode(bytes).into_bytes());
    for before in 0..3 {
        let shifted = shifted(bytes, before);
        let encoded = STANDARD_NO_PAD.encode(&shifted);
        all.extend(inner(encoded.as_bytes(), before, shifted.len(), 6));
    }
}

/// The same for base32, whose groups have five bytes.
fn base32(bytes: &[u8], all: &mut BTreeSet<Vec<u8>>) {
    let whole = spelled32(bytes);
    let shifts = (0..5).filter_map(|before| {
        let shifted = shifted(bytes, before);
        inner(&spelled32(&shifted), before, shifted.len(), 5)
    });
    all.extend(shifts.chain([whole]).filter(|spelling| spelling.len() >= MIN_BASE32));
}

fn shifted(bytes: &[u8], before: usize) -> Vec<u8> {
    let mut shifted = vec![0; before];
    shifted.extend_from_slice(bytes);
    shifted
}

/// Removes the characters of an encoding that depend on bytes before or after the secret. `bits` is the number
/// of bits of a character.
fn inner(encoded: &[u8], before: usize, bytes: usize, bits: usize) -> Option<Vec<u8>> {
    let first = (before * 8).div_ceil(bits);
    encoded.get(first..bytes * 8 / bits).map(<[u8]>::to_vec)
}

fn spelled32(bytes: &[u8]) -> Vec<u8> {
    let (mut held, mut bits) = (0_u32, 0_u32);
    let mut out = Vec::with_capacity(bytes.len() * 8 / 5 + 1);
    let sign = |five: u32| match u8::try_from(five & 31).unwrap_or_default() {
        letter @ 0..26 => b'A'.saturating_add(letter),
        digit => b'2'.saturating_add(digit.saturating_sub(26)),
    };
    for byte in bytes {
        // Of the held bits only those that are not written yet: at most 4.
        held = ((held & 0xF) << 8) | u32::from(*byte);
        bits = bits.saturating_add(8);
        while bits >= 5 {
            bits = bits.saturating_sub(5);
            out.push(sign(held >> bits));
        }
    }
    if bits > 0 {
        out.push(sign(held << 5_u32.saturating_sub(bits)));
    }
    out
}
