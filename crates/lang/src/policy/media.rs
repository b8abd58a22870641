//! The files that models read beside texts: images and PDF documents.

use serde::{Deserialize, Serialize};

/// The most bytes of one file.
pub const MAX_FILE_BYTES: usize = 8 << 20;
/// The most bytes of all files of a run together.
pub const MAX_FILES_BYTES: usize = 16 << 20;
/// The most files of a run.
pub const MAX_FILES: usize = 20;

/// A kind of file that the providers' protocols take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MediaType {
    /// `image/png`.
    #[serde(rename = "image/png")]
    Png,
    /// `image/jpeg`.
    #[serde(rename = "image/jpeg")]
    Jpeg,
    /// `image/gif`.
    #[serde(rename = "image/gif")]
    Gif,
    /// `image/webp`.
    #[serde(rename = "image/webp")]
    Webp,
    /// `application/pdf`.
    #[serde(rename = "application/pdf")]
    Pdf,
}

impl MediaType {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Png, Self::Jpeg, Self::Gif, Self::Webp, Self::Pdf];

    /// Its name in MIME.
    pub fn name(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
            Self::Pdf => "application/pdf",
        }
    }

    /// Whether it is an image.
    pub fn is_image(self) -> bool {
        self != Self::Pdf
    }

    /// The kind of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case("image/jpg") {
            return Some(Self::Jpeg);
        }
        Self::ALL.into_iter().find(|kind| name.eq_ignore_ascii_case(kind.name()))
    }

    /// The kinds that a range names: `image/*`, or one kind. Parameters such as `; charset=x` are of no kind here.
    pub fn of_range(range: &str) -> Vec<Self> {
        if range.eq_ignore_ascii_case("image/*") {
            return Self::ALL.into_iter().filter(|kind| kind.is_image()).collect();
        }
        Self::of_name(range).into_iter().collect()
    }

    /// The kind of a file, by its first bytes.
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let begins = |with: &[u8]| bytes.starts_with(with);
        if begins(b"\x89PNG\r\n\x1a\n") {
            Some(Self::Png)
        } else if begins(b"\xff\xd8\xff") {
            Some(Self::Jpeg)
        } else if begins(b"GIF87a") || begins(b"GIF89a") {
            Some(Self::Gif)
        } else if begins(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
            Some(Self::Webp)
        } else if begins(b"%PDF-") {
            Some(Self::Pdf)
        } else {
            None
        }
    }

    /// The kind of a file, by the end of its address.
    pub fn of_address(url: &str) -> Option<Self> {
        let path = url.split(['?', '#']).next().unwrap_or_default();
        let (_, end) = path.rsplit_once('.')?;
        match end.to_ascii_lowercase().as_str() {
            "png" => Some(Self::Png),
            "jpg" | "jpeg" => Some(Self::Jpeg),
            "gif" => Some(Self::Gif),
            "webp" => Some(Self::Webp),
            "pdf" => Some(Self::Pdf),
            _ => None,
        }
    }

    /// The estimated tokens that a file of `bytes` bytes takes of a window; the provider's count replaces it. An image has
    /// some 1,600 tokens at the size to which providers scale it, a page of a PDF document about as many, in some 50 KB.
    pub fn estimated_tokens(self, bytes: usize) -> usize {
        const OF_IMAGE: usize = 1_600;
        const PAGE_BYTES: usize = 50_000;
        if self.is_image() { OF_IMAGE } else { bytes.div_ceil(PAGE_BYTES).max(1).saturating_mul(OF_IMAGE) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_known_by_its_name_its_range_its_bytes_and_its_address() {
        for kind in MediaType::ALL {
            assert_eq!(MediaType::of_name(&kind.name().to_uppercase()), Some(kind));
            assert_eq!(MediaType::of_range(kind.name()), [kind]);
        }
        assert_eq!(MediaType::of_range("image/*").len(), 4);
        assert!(MediaType::of_range("image/tiff").is_empty() && MediaType::of_range("*/*").is_empty());
        for (bytes, kind) in [
            (b"\x89PNG\r\n\x1a\n....".as_slice(), Some(MediaType::Png)),
            (b"\xff\xd8\xff\xe0", Some(MediaType::Jpeg)),
            (b"GIF89a", Some(MediaType::Gif)),
            (b"RIFF....WEBPVP8 ", Some(MediaType::Webp)),
            (b"RIFF....WAVE", None),
            (b"%PDF-1.7", Some(MediaType::Pdf)),
            (b"<svg>", None),
            (b"", None),
        ] {
            assert_eq!(MediaType::of_bytes(bytes), kind);
        }
        assert_eq!(MediaType::of_address("https://e.example/a.b/c.PDF?x=1.png"), Some(MediaType::Pdf));
        assert_eq!(MediaType::of_address("https://e.example/photo"), None);
    }

    #[test]
    fn a_larger_document_takes_more_of_the_window() {
        assert_eq!(MediaType::Png.estimated_tokens(7_000_000), MediaType::Png.estimated_tokens(1));
        assert!(MediaType::Pdf.estimated_tokens(1_000_000) > 10 * MediaType::Pdf.estimated_tokens(1_000));
    }
}
