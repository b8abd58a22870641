//! Digests: 128 bits that identify a text. They are the same on every machine and in every version, because a
//! run's state is the fold of its journal.

/// The digest of a text: FNV-1a with 128 bits. A collision within one run is expected only after about 10^19
/// texts. Kept as bytes, which need no alignment: a run holds some digests for each iteration.
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

impl std::fmt::Display for Digest {
    /// 32 hexadecimal digits.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:032x}", self.number())
    }
}

impl std::str::FromStr for Digest {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(text, 16).map(|number| Self(number.to_ne_bytes()))
    }
}

impl Default for Digest {
    fn default() -> Self {
        Self::new()
    }
}
