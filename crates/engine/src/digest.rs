//! Digests of texts. They are the same on every machine and in every version, because a run's state is the fold of its
//! journal. What decides which text is executed, or whether two requests are the same, is a [`Sha256`]: whoever writes a text
//! can find another one of the same [`Digest`] in seconds. A [`Digest`] only compares what the engine itself has made, such as
//! the iterations of a run that repeats itself, the requests of a recording, or two folds of a run.

use std::fmt;
use std::str::FromStr;

use sha2::Digest as _;

/// The bytes that SHA-256 takes at a time.
const BLOCK: usize = 64;

/// The SHA-256 of a text, or of a list of texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sha256([u8; 32]);

impl Sha256 {
    /// The SHA-256 of one text.
    pub fn of(text: &str) -> Self {
        Self::of_parts(|part| part(text))
    }

    /// The SHA-256 of bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let mut context = sha2::Sha256::new();
        context.update(bytes);
        Self(context.finalize().into())
    }

    /// The SHA-256 of a text that comes in parts: `ab`, `c` is `a`, `bc`.
    pub fn of_parts(spell: impl FnOnce(&mut dyn FnMut(&str))) -> Self {
        let mut context = sha2::Sha256::new();
        spell(&mut |part| context.update(part.as_bytes()));
        Self(context.finalize().into())
    }

    /// The SHA-256 of a list of texts, each with its length before it: other lists never give the same bytes.
    pub fn of_list<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut context = sha2::Sha256::new();
        for text in texts {
            context.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
            context.update(text.as_bytes());
        }
        Self(context.finalize().into())
    }

    /// The HMAC of bytes with a key (RFC 2104).
    pub fn hmac(key: &[u8], bytes: &[u8]) -> Self {
        let mut block = [0; BLOCK];
        let short;
        let key = if key.len() > BLOCK {
            short = Self::of_bytes(key);
            short.bytes().as_slice()
        } else {
            key
        };
        block.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
        let keyed = |pad: u8, bytes: &[u8]| {
            let mut context = sha2::Sha256::new();
            context.update(block.map(|byte| byte ^ pad));
            context.update(bytes);
            Self(context.finalize().into())
        };
        keyed(0x5c, keyed(0x36, bytes).bytes())
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Sha256 {
    /// 64 hexadecimal digits.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl FromStr for Sha256 {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok()).ok_or(());
        let mut bytes = [0; 32];
        if text.len() != 64 {
            return Err(());
        }
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let [high, low] = pair else { return Err(()) };
            *byte = digit(*high)? * 16 + digit(*low)?;
        }
        Ok(Self(bytes))
    }
}

/// The digest of a text: FNV-1a with 128 bits. Where nobody chooses the texts, a collision within one run is expected only
/// after about 10^19 of them. Kept as bytes, which need no alignment: a run holds some digests for each iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 16]);

const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

impl Digest {
    /// The digest of an empty text.
    pub fn new() -> Self {
        Self(BASIS.to_ne_bytes())
    }

    /// Adds a text and its length: `ab`, `c` is not `a`, `bc`.
    pub fn add(&mut self, text: &str) {
        self.extend(text);
        self.take(&u64::try_from(text.len()).unwrap_or(u64::MAX).to_le_bytes());
    }

    /// Adds a part of a text without its length: `ab`, `c` is `a`, `bc`.
    pub fn extend(&mut self, part: &str) {
        self.take(part.as_bytes());
    }

    fn take(&mut self, bytes: &[u8]) {
        let mut state = self.number();
        for byte in bytes {
            state = (state ^ u128::from(*byte)).wrapping_mul(PRIME);
        }
        self.0 = state.to_ne_bytes();
    }

    fn number(self) -> u128 {
        u128::from_ne_bytes(self.0)
    }

    /// The digest of one text.
    pub fn of(text: &str) -> Self {
        let mut digest = Self::new();
        digest.add(text);
        digest
    }
}

impl fmt::Display for Digest {
    /// 32 hexadecimal digits.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", self.number())
    }
}

impl FromStr for Digest {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(());
        }
        u128::from_str_radix(text, 16).map(|number| Self(number.to_ne_bytes())).map_err(drop)
    }
}

impl Default for Digest {
    fn default() -> Self {
        Self::new()
    }
}
