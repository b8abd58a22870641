//! The signatures of requests to AWS: Signature Version 4, over SHA-256. A pure function of the request, the moment and the
//! credentials.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

use loopctl_engine::digest::Sha256;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// All but RFC 3986's unreserved characters.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A request that is to be signed.
pub(super) struct UnsignedRequest<'a> {
    /// `GET`, `POST`.
    pub(super) method: &'a str,
    /// The path as it is sent.
    pub(super) path: &'a str,
    /// The query as it is sent, without its `?`.
    pub(super) query: &'a str,
    /// The headers that are signed, with names in lower case.
    pub(super) headers: &'a [(&'a str, &'a str)],
    /// The body, whole.
    pub(super) body: &'a [u8],
}

/// When, where and by whom a request is signed.
pub(super) struct SigningScope<'a> {
    /// The moment: `20150830T123600Z`.
    pub(super) moment: &'a str,
    /// The region.
    pub(super) region: &'a str,
    /// The service.
    pub(super) service: &'a str,
    /// The id of the key.
    pub(super) key_id: &'a str,
    /// The key.
    pub(super) secret_key: &'a str,
}

/// What is sent of a signature.
pub(super) struct RequestSignature {
    /// The value of `Authorization`.
    pub(super) authorization: String,
    /// The signature alone: 64 hexadecimal digits.
    pub(super) signature: String,
}

impl SigningScope<'_> {
    /// Signs a request.
    pub(super) fn sign(&self, request: &UnsignedRequest<'_>) -> RequestSignature {
        let mut headers: Vec<(&str, String)> =
            request.headers.iter().map(|(name, value)| (*name, trimmed(value))).collect();
        headers.sort();
        let names = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        let headers: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let canonical = [
            request.method,
            &canonical_path(request.path),
            &canonical_query(request.query),
            &headers,
            &names,
            &Sha256::of_bytes(request.body).to_string(),
        ]
        .join("\n");
        let day = self.moment.get(..8).unwrap_or_default();
        let scope = format!("{day}/{}/{}/aws4_request", self.region, self.service);
        let to_sign = [ALGORITHM, self.moment, &scope, &Sha256::of(&canonical).to_string()].join("\n");
        let mut key = hmac(format!("AWS4{}", self.secret_key).as_bytes(), day);
        for part in [self.region, self.service, "aws4_request"] {
            key = hmac(key.bytes(), part);
        }
        let tag = hmac(key.bytes(), &to_sign);
        let signature = tag.to_string();
        let authorization =
            format!("{ALGORITHM} Credential={}/{scope}, SignedHeaders={names}, Signature={signature}", self.key_id);
        RequestSignature { authorization, signature }
    }
}

fn hmac(key: &[u8], text: &str) -> Sha256 {
    Sha256::hmac(key, text.as_bytes())
}

/// A value without blanks at its ends, and with one blank where it has more.
fn trimmed(value: &str) -> String {
    value.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

fn encoded(bytes: &[u8]) -> String {
    percent_encode(bytes, RESERVED).to_string()
}

/// The path without `.`, `..` and empty parts. Each part is encoded once more than it is sent: `%3A` becomes `%253A`, as
/// every service but S3 wants it.
fn canonical_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let mut canonical: String = parts.iter().map(|part| format!("/{}", encoded(part.as_bytes()))).collect();
    if canonical.is_empty() || path.ends_with('/') {
        canonical.push('/');
    }
    canonical
}

/// The parameters by their names and values, encoded in one way.
fn canonical_query(query: &str) -> String {
    let same = |text: &str| encoded(&percent_decode_str(text).collect::<Vec<u8>>());
    let parameters = query.split('&').filter(|parameter| !parameter.is_empty());
    let mut parameters: Vec<[String; 2]> = parameters
        .map(|parameter| {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            [same(name), same(value)]
        })
        .collect();
    parameters.sort();
    parameters.iter().map(|parameter| parameter.join("=")).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: &str = "20150830T123600Z";

    /// The signature of a request of AWS's test suite for Signature Version 4.
    fn signed(method: &str, target: &str, more: &[(&str, &str)], body: &str) -> RequestSignature {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let headers = [&[("x-amz-date", MOMENT), ("host", "example.amazonaws.com")], more].concat();
        let request = UnsignedRequest { method, path, query, headers: &headers, body: body.as_bytes() };
        let scope = SigningScope {
            moment: MOMENT,
            region: "us-east-1",
            service: "service",
            key_id: "AKIDEXAMPLE",
            secret_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
        };
        scope.sign(&request)
    }

    #[test]
    fn requests_of_the_test_suite_of_aws_are_signed_as_it_says() {
        const VANILLA: &str = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
        let unreserved = "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        for (method, target, expected) in [
            ("GET", "/", VANILLA),
            ("GET", "", VANILLA),
            ("GET", "//", VANILLA),
            ("GET", "/./", VANILLA),
            ("GET", "/example/..", VANILLA),
            ("GET", "/example1/example2/../..", VANILLA),
            ("GET", "/./example", "ef75d96142cf21edca26f06005da7988e4f8dc83a165a80865db7089db637ec5"),
            ("GET", "//example//", "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84"),
            ("GET", "/example space/", "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"),
            ("GET", "/ሴ", "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"),
            ("GET", unreserved, "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"),
            ("GET", "/?Param1=value1", "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"),
            (
                "GET",
                "/?Param2=value2&Param1=value1",
                "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            ),
            ("POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        ] {
            assert_eq!(signed(method, target, &[], "").signature, expected, "{method} {target}");
        }
    }

    #[test]
    fn the_body_and_the_headers_are_part_of_the_signature() {
        let form = [("content-type", "application/x-www-form-urlencoded")];
        let expected = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
                        SignedHeaders=content-type;host;x-amz-date, \
                        Signature=ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a";
        assert_eq!(signed("POST", "/", &form, "Param1=value1").authorization, expected);
        assert_ne!(signed("POST", "/", &form, "Param1=value2").authorization, expected);
        let blanks = [("my-header1", " value1 "), ("my-header2", "\"a   b   c\"")];
        let expected = "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736";
        assert_eq!(signed("GET", "/", &blanks, "").signature, expected);
    }

    #[test]
    fn a_path_is_encoded_once_more_than_it_is_sent() {
        assert_eq!(canonical_path("/model/a.b-v1:0/invoke"), "/model/a.b-v1%3A0/invoke");
        assert_eq!(canonical_path("/model/a.b-v1%3A0/invoke"), "/model/a.b-v1%253A0/invoke");
        assert_eq!(canonical_query("b=%2f&a=1&b=%20&flag"), "a=1&b=%20&b=%2F&flag=");
    }
}
