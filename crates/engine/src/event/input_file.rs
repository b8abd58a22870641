//! A file in the input of a loop, as its start has it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Started;
use crate::blob::Blob;
use loopctl_lang::policy::media::MediaType;

/// A file that the model of a loop reads with its first message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFile {
    /// Where it stands in the input: `photo`, or `pages[0]`.
    pub place: String,
    /// The name that its caller gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is.
    pub media_type: MediaType,
    /// Its bytes, or its address.
    pub content: InputFileContent,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputFileContent {
    /// Bytes, stored beside the events.
    Data {
        /// The bytes in base64.
        base64: Blob,
        /// How many bytes they are.
        bytes: usize,
        /// The SHA-256 of the bytes.
        sha256: String,
    },
    /// An address, which the provider reads at each request.
    Url(String),
}

impl InputFile {
    /// A name for protocols that want one.
    pub fn file_name(&self) -> String {
        let end = match self.media_type {
            MediaType::Png => "png",
            MediaType::Jpeg => "jpg",
            MediaType::Gif => "gif",
            MediaType::Webp => "webp",
            MediaType::Pdf => "pdf",
        };
        self.name.clone().unwrap_or_else(|| {
            let stem: String = self.place.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
            format!("{}.{end}", stem.trim_matches('-'))
        })
    }

    /// What it is, in a line: its place, its kind, and its size or its address.
    pub fn account(&self) -> String {
        let name = self.name.as_ref().map_or_else(String::new, |name| format!(" {name}"));
        match &self.content {
            InputFileContent::Data { bytes, sha256, .. } => {
                let sha256 = sha256.get(..16).unwrap_or(sha256);
                format!("[{}:{name} {}, {bytes} bytes, sha256 {sha256}]", self.place, self.media_type.name())
            }
            InputFileContent::Url(url) => format!("[{}:{name} {}, {url}]", self.place, self.media_type.name()),
        }
    }

    /// The length in bytes of a text that takes as much of the window, estimated.
    pub fn size(&self) -> usize {
        /// A token of text has about four bytes.
        const TOKEN_BYTES: usize = 4;
        let bytes = match &self.content {
            InputFileContent::Data { bytes, .. } => *bytes,
            InputFileContent::Url(_) => 0,
        };
        self.media_type.estimated_tokens(bytes).saturating_mul(TOKEN_BYTES)
    }

    /// Its text that is stored beside the events.
    pub fn blob(&self) -> Option<&Blob> {
        match &self.content {
            InputFileContent::Data { base64, .. } => Some(base64),
            InputFileContent::Url(_) => None,
        }
    }
}

impl Started {
    /// The input as it was given: with the bytes of its files.
    pub fn given_input(&self) -> Value {
        let mut input = self.run_input().into_whole();
        for file in &self.files {
            if let (Some(base64), Some(account)) = (file.blob(), account_at(&mut input, &file.place)) {
                account.remove("sha256");
                account.remove("bytes");
                account.insert("base64".to_owned(), json!(&**base64));
            }
        }
        input
    }
}

/// The account of the file at a place of an input, such as `photo` or `pages[0]`.
pub fn account_at<'v>(input: &'v mut Value, place: &str) -> Option<&'v mut Map<String, Value>> {
    let is_name = input.get(place).is_some_and(Value::is_object);
    let value = match place.strip_suffix(']').and_then(|rest| rest.rsplit_once('[')) {
        Some((name, index)) if !is_name => input.get_mut(name)?.get_mut(index.parse::<usize>().ok()?)?,
        _ => input.get_mut(place)?,
    };
    value.as_object_mut()
}
