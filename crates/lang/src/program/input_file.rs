//! Files in the input of a loop: images and PDF documents, which its model reads beside the texts. The schema of the input
//! says where they are, by its `contentMediaType`. A file is taken out of the input; its account stays in its place.

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use serde_json::{Map, Value, json};

use super::reference::escape_pointer;
use super::value_kind::value_kind;
use crate::policy::host;
use crate::policy::media::{MAX_FILE_BYTES, MAX_FILES, MAX_FILES_BYTES, MediaType};
use crate::policy::public_url;

/// A place of the input that holds a file, or a list of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePlace {
    /// The property.
    pub name: String,
    /// Whether it holds a list of them.
    pub is_list: bool,
    /// What they may be.
    pub kinds: Vec<MediaType>,
}

/// A file that was taken out of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenFile {
    /// Where it was: `photo`, or `pages[0]`.
    pub place: String,
    /// Its name, when it was given.
    pub name: Option<String>,
    /// What it is.
    pub kind: MediaType,
    /// Its content.
    pub content: FileContent,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContent {
    /// Bytes that were given.
    Bytes(Vec<u8>),
    /// An address, which the provider reads.
    Url(String),
    /// The file of this SHA-256, which the run that gave the input has.
    Known(String),
}

/// Why an input has no file where it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFileFault {
    /// The place in the input, as a JSON pointer.
    pub path: String,
    /// What is wrong, in a sentence without a final stop.
    pub message: String,
}

/// The ends of names that are reserved for networks of one's own (RFC 6762, RFC 8375, ICANN).
const NOT_PUBLIC: [&str; 3] = [".local", ".internal", ".home.arpa"];
/// Addresses have at most this many characters.
const MAX_URL_CHARS: usize = 2_048;
/// Names of files have at most this many characters.
const MAX_NAME_CHARS: usize = 200;
/// What is accepted: with or without padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Where the input of this schema has files: its properties, and the items of its lists, whose `contentMediaType` is an image
/// or PDF, and that are no strings.
pub fn places(schema: &Value) -> Vec<FilePlace> {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties
        .filter_map(|(name, part)| {
            let part = resolved(schema, part);
            let items = part.get("items").map(|items| resolved(schema, items));
            let of = |part: &Value| Some(kinds_of(part)).filter(|kinds| !kinds.is_empty());
            let (is_list, kinds) = match of(part) {
                Some(kinds) => (false, kinds),
                None => (true, items.and_then(of)?),
            };
            Some(FilePlace { name: name.clone(), is_list, kinds })
        })
        .collect()
}

/// Whether a part of a schema takes texts by its `type`.
pub fn takes_text(part: &Value) -> bool {
    match part.get("type") {
        Some(Value::String(kind)) => kind == "string",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
        _ => false,
    }
}

fn kinds_of(part: &Value) -> Vec<MediaType> {
    let range = part.get("contentMediaType").and_then(Value::as_str).filter(|_| !takes_text(part));
    range.map(MediaType::of_range).unwrap_or_default()
}

/// The part that a reference within the schema names.
fn resolved<'s>(schema: &'s Value, part: &'s Value) -> &'s Value {
    let pointer = part.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix('#'));
    pointer.and_then(|pointer| schema.pointer(pointer)).unwrap_or(part)
}

/// Takes the files out of an input, and leaves their accounts. What is not there, or `null`, is no file.
///
/// # Errors
/// The first place that holds no file, and why.
pub fn take(places: &[FilePlace], input: &mut Value) -> Result<Vec<TakenFile>, InputFileFault> {
    let mut taken: Vec<TakenFile> = Vec::new();
    let mut bytes = 0_usize;
    for place in places {
        let path = format!("/{}", escape_pointer(&place.name));
        let Some(value) = input.get_mut(&place.name).filter(|value| !value.is_null()) else { continue };
        let found: Vec<(String, String, &mut Value)> = match value {
            // What is no list is the schema's to judge.
            value if !place.is_list => vec![(place.name.clone(), path, value)],
            Value::Array(items) => {
                let numbered = items.iter_mut().enumerate();
                numbered.map(|(at, item)| (format!("{}[{at}]", place.name), format!("{path}/{at}"), item)).collect()
            }
            _ => continue,
        };
        for (name, path, value) in found {
            let fault = |message: String| InputFileFault { path: path.clone(), message };
            let file = read(&place.kinds, &name, value).map_err(fault)?;
            if let FileContent::Bytes(content) = &file.content {
                bytes = bytes.saturating_add(content.len());
            }
            if bytes > MAX_FILES_BYTES {
                return Err(fault(format!("the files of a run have at most {} MiB together", MAX_FILES_BYTES >> 20)));
            }
            if taken.len() == MAX_FILES {
                return Err(fault(format!("a run has at most {MAX_FILES} files")));
            }
            taken.push(file);
        }
    }
    Ok(taken)
}

/// Reads the file at a place, and puts its account there; the account of one that has bytes lacks their digest.
fn read(kinds: &[MediaType], place: &str, value: &mut Value) -> Result<TakenFile, String> {
    let Value::Object(given) = value else {
        return Err(format!("`{place}` is a file, and {} was given: {}", value_kind(value), form()));
    };
    if given.get("type").and_then(Value::as_str) != Some("file") {
        return Err(format!("`{place}` is a file, and its `type` is not `file`: {}", form()));
    }
    const KNOWN: [&str; 7] = ["type", "base64", "url", "sha256", "media_type", "name", "bytes"];
    if let Some(name) = given.keys().find(|name| !KNOWN.contains(&name.as_str())) {
        return Err(match name.as_str() {
            "path" => format!("the `path` of `{place}` is read by the command line only: give the content as `base64`"),
            _ => format!("the file `{place}` has an unknown member `{}`: {}", shown(name), form()),
        });
    }
    let text = |name: &str| match given.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(other) => Err(format!("the `{name}` of the file `{place}` is {}, and not a text", value_kind(other))),
    };
    let declared = text("media_type")?
        .map(|name| {
            MediaType::of_name(name).ok_or_else(|| {
                format!("the `media_type` of the file `{place}` is none that models read: {}", names(&MediaType::ALL))
            })
        })
        .transpose()?;
    let name = text("name")?.map(str::to_owned);
    if name.as_ref().is_some_and(|name| name.chars().count() > MAX_NAME_CHARS || name.contains(char::is_control)) {
        return Err(format!(
            "the `name` of the file `{place}` has at most {MAX_NAME_CHARS} characters, and no line breaks"
        ));
    }
    let (kind, content) = match (text("base64")?, text("url")?, text("sha256")?) {
        (Some(base64), None, None) => {
            let bytes = decoded(base64).map_err(|why| format!("the `base64` of the file `{place}` {why}"))?;
            let kind = MediaType::of_bytes(&bytes)
                .ok_or_else(|| format!("the file `{place}` is none that models read: {}", names(&MediaType::ALL)))?;
            if declared.is_some_and(|declared| declared != kind) {
                return Err(format!("the file `{place}` is {}, and not what its `media_type` says", kind.name()));
            }
            (kind, FileContent::Bytes(bytes))
        }
        (None, Some(url), None) => {
            address(url).map_err(|why| format!("the `url` of the file `{place}` {why}"))?;
            let known = declared.or_else(|| MediaType::of_address(url)).or_else(|| only(kinds));
            let kind = known.ok_or_else(|| format!("give the `media_type` of the file `{place}`: {}", names(kinds)))?;
            (kind, FileContent::Url(url.to_owned()))
        }
        (None, None, Some(sha256)) => {
            let kind = declared.ok_or_else(|| format!("give the `media_type` of the file `{place}`"))?;
            (kind, FileContent::Known(sha256.to_owned()))
        }
        _ => return Err(format!("the file `{place}` has one of `base64` and `url`: {}", form())),
    };
    if !kinds.contains(&kind) {
        return Err(format!("the file `{place}` is {}, and the loop takes {}", kind.name(), names(kinds)));
    }
    let mut account =
        Map::from_iter([("type".to_owned(), json!("file")), ("media_type".to_owned(), json!(kind.name()))]);
    if let Some(name) = &name {
        account.insert("name".to_owned(), json!(name));
    }
    match &content {
        FileContent::Bytes(bytes) => {
            account.insert("bytes".to_owned(), json!(bytes.len()));
        }
        FileContent::Url(url) => {
            account.insert("url".to_owned(), json!(url));
        }
        FileContent::Known(sha256) => {
            account.insert("sha256".to_owned(), json!(sha256));
            if let Some(bytes) = given.get("bytes") {
                account.insert("bytes".to_owned(), bytes.clone());
            }
        }
    }
    *value = Value::Object(account);
    Ok(TakenFile { place: place.to_owned(), name, kind, content })
}

/// The bytes of a text in base64, which may be a `data:` address and have line breaks.
fn decoded(text: &str) -> Result<Vec<u8>, String> {
    let text = match text.strip_prefix("data:") {
        Some(rest) => rest.split_once(";base64,").ok_or("is a `data:` address without `;base64,`")?.1,
        None => text,
    };
    let too_long = || format!("has more than {} MiB", MAX_FILE_BYTES >> 20);
    // Three bytes are four characters; line breaks add a few.
    if text.len() / 5 * 3 > MAX_FILE_BYTES {
        return Err(too_long());
    }
    // The alphabet for addresses means the same bytes.
    let standard = |c: char| match c {
        '-' => '+',
        '_' => '/',
        c => c,
    };
    let text: String = text.chars().filter(|c| !c.is_ascii_whitespace()).map(standard).collect();
    let bytes = LENIENT.decode(text).map_err(|_| "is no base64".to_owned())?;
    if bytes.len() > MAX_FILE_BYTES {
        return Err(too_long());
    }
    if bytes.is_empty() { Err("is empty".to_owned()) } else { Ok(bytes) }
}

/// Bytes in base64, as the protocols take them.
pub fn encoded(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Whether a provider may be sent this address: a public one. A model's server in one's own network could else be used to
/// read what is in there.
fn address(url: &str) -> Result<(), String> {
    if url.chars().count() > MAX_URL_CHARS {
        return Err(format!("has more than {MAX_URL_CHARS} characters"));
    }
    let begins = |with: &str| url.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with));
    if begins("data:") {
        return Err("is a `data:` address: give it as `base64`".to_owned());
    }
    if !begins("https://") {
        return Err("does not begin with `https://`".to_owned());
    }
    let authority = url.split('/').nth(2).unwrap_or_default();
    if url.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\') {
        return Err("has a character that no address has".to_owned());
    }
    if authority.contains('@') {
        return Err("holds a user name or a password".to_owned());
    }
    let host = host::spelling(public_url::host(url)).unwrap_or_default();
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    let is_reserved = NOT_PUBLIC.iter().any(|end| name.ends_with(end));
    if !host.contains(['.', ':']) || is_reserved || host::is_private(&host) {
        return Err("is not that of a public host: the provider could not read it".to_owned());
    }
    Ok(())
}

/// The only kind, if there is only one.
fn only(kinds: &[MediaType]) -> Option<MediaType> {
    match kinds {
        [kind] => Some(*kind),
        _ => None,
    }
}

/// How a file is written.
fn form() -> &'static str {
    "write {\"type\": \"file\", \"base64\": \"...\"}, or \"url\" in place of \"base64\""
}

/// The names of kinds of files, in a row.
pub fn names(kinds: &[MediaType]) -> String {
    kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
}

/// A name that somebody else wrote, in a message.
fn shown(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n1234";

    fn schema() -> Value {
        json!({
            "properties": {
                "photo": { "contentMediaType": "image/*" },
                "bill": { "$ref": "#/$defs/pdf" },
                "pages": { "type": "array", "items": { "type": "object", "contentMediaType": "image/png" } },
                "text": { "type": "string", "contentMediaType": "image/png" },
                "video": { "contentMediaType": "video/mp4" },
                "id": {}
            },
            "$defs": { "pdf": { "contentMediaType": "application/pdf" } }
        })
    }

    fn taken(mut input: Value) -> Result<(Value, Vec<TakenFile>), InputFileFault> {
        let files = take(&places(&schema()), &mut input)?;
        Ok((input, files))
    }

    #[test]
    fn the_schema_says_where_files_are() {
        let mut names: Vec<_> = places(&schema()).into_iter().map(|place| (place.name, place.is_list)).collect();
        names.sort();
        let want = [("bill", false), ("pages", true), ("photo", false)];
        assert_eq!(names, want.map(|(name, is_list)| (name.to_owned(), is_list)));
        assert!(places(&Value::Null).is_empty());
    }

    #[test]
    fn a_file_leaves_its_account_which_gives_the_same_file_again() {
        let base64 = encoded(PNG);
        let given = json!({
            "id": 7,
            "photo": { "type": "file", "base64": format!("data:image/png;base64,{base64}"), "name": "a.png" },
            "bill": { "type": "file", "url": "https://files.example.com/bill?id=3" },
            "pages": [{ "type": "file", "base64": base64.trim_end_matches('='), "media_type": "image/png" }]
        });
        let (account, files) = taken(given).unwrap();
        assert_eq!(
            account,
            json!({
                "id": 7,
                "photo": { "type": "file", "media_type": "image/png", "name": "a.png", "bytes": 12 },
                "bill": { "type": "file", "media_type": "application/pdf", "url": "https://files.example.com/bill?id=3" },
                "pages": [{ "type": "file", "media_type": "image/png", "bytes": 12 }]
            })
        );
        let mut places: Vec<_> = files.iter().map(|file| file.place.as_str()).collect();
        places.sort_unstable();
        assert_eq!(places, ["bill", "pages[0]", "photo"]);
        let bytes = files.iter().filter(|file| file.content == FileContent::Bytes(PNG.to_vec()));
        assert_eq!(bytes.count(), 2);
        let bytes = [PNG, b"\xfb\xff\xfe"].concat();
        let for_addresses = encoded(&bytes).replace('+', "-").replace('/', "_");
        assert!(for_addresses.contains(['-', '_']), "{for_addresses}");
        let (_, files) = taken(json!({ "photo": { "type": "file", "base64": for_addresses } })).unwrap();
        assert_eq!(files[0].content, FileContent::Bytes(bytes));
        let known = json!({ "photo": { "type": "file", "media_type": "image/png", "bytes": 12, "sha256": "ab" } });
        let (account, files) = taken(known.clone()).unwrap();
        assert_eq!((account, &files[0].content), (known, &FileContent::Known("ab".to_owned())));
        assert_eq!(taken(json!({ "photo": null })).unwrap().1, []);
    }

    #[test]
    fn what_is_no_file_that_models_read_is_refused_with_its_place() {
        let of = |file: Value| taken(json!({ "photo": file })).unwrap_err();
        let file = |member: &str, value: &str| of(json!({ "type": "file", member: value }));
        for (fault, part) in [
            (of(json!("a.png")), "a text was given"),
            (of(json!({ "base64": "" })), "its `type` is not `file`"),
            (of(json!({ "type": "file" })), "one of `base64` and `url`"),
            (of(json!({ "type": "file", "base64": "AA", "url": "https://e.example/a" })), "one of `base64` and `url`"),
            (of(json!({ "type": "file", "base64": 7 })), "is a number, and not a text"),
            (of(json!({ "type": "file", "base64": encoded(PNG), "media_type": "image/gif" })), "is image/png, and not"),
            (of(json!({ "type": "file", "base64": encoded(b"%PDF-1.4") })), "and the loop takes image/png, image/jpeg"),
            (file("base64", "%%%"), "is no base64"),
            (file("url", "data:image/png;base64,AAAA"), "give it as `base64`"),
            (file("url", "https://files.local/a.png"), "a public host"),
            (file("base64", ""), "is empty"),
            (file("base64", &encoded(b"<svg/>")), "none that models read"),
            (file("path", "/etc/passwd"), "read by the command line only"),
            (file("file", "x"), "unknown member `file`"),
            (file("url", "http://e.example.com/a.png"), "does not begin with `https://`"),
            (file("url", "https://10.0.0.1/a.png"), "a public host"),
            (file("url", "https://localhost/a.png"), "a public host"),
            (file("url", "https://[::1]/a.png"), "a public host"),
            (file("url", "https://me:pw@e.example.com/a.png"), "a password"),
            (file("url", "https://e.example.com/photo"), "give the `media_type`"),
            (file("url", "https://e.example.com/a b.png"), "no address has"),
        ] {
            assert!(fault.message.contains(part), "{} lacks {part}", fault.message);
            assert_eq!(fault.path, "/photo");
        }
        let fault = taken(json!({ "pages": [{ "type": "file", "base64": encoded(PNG) }, 7] })).unwrap_err();
        assert_eq!(fault.path, "/pages/1");
    }

    #[test]
    fn files_are_bounded() {
        let large = [PNG, &vec![0; MAX_FILE_BYTES]].concat();
        let fault = taken(json!({ "photo": { "type": "file", "base64": encoded(&large) } })).unwrap_err();
        assert!(fault.message.contains("more than 8 MiB"), "{}", fault.message);
        let page = |bytes: &[u8]| json!({ "type": "file", "base64": encoded(bytes) });
        let large = [PNG, &vec![0; MAX_FILE_BYTES - PNG.len()]].concat();
        let fault = taken(json!({ "pages": [page(&large), page(&large), page(PNG)] })).unwrap_err();
        assert!(fault.message.contains("at most 16 MiB together"), "{}", fault.message);
        let fault = taken(json!({ "pages": vec![page(PNG); MAX_FILES + 1] })).unwrap_err();
        assert_eq!((fault.path.as_str(), fault.message.as_str()), ("/pages/20", "a run has at most 20 files"));
    }
}
