//! The headers that a project may add to the requests of a model.

/// Headers that frame a message, name its receiver, or say what loopctl itself writes and reads.
const OURS: [&str; 15] = [
    "host",
    "content-length",
    "content-type",
    "content-encoding",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "upgrade",
    "te",
    "trailer",
    "expect",
    "accept",
    "accept-encoding",
];

/// Why a header of this name can't be sent.
pub fn name_fault(name: &str) -> Option<&'static str> {
    // RFC 9110's `token`.
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(is_token) {
        return Some("the name of a header has letters, digits and `-` only");
    }
    OURS.contains(&name.to_ascii_lowercase().as_str()).then_some("it belongs to the connection, which sets it itself")
}

/// Whether the value of a header says where its secret is.
pub fn is_source(value: &str) -> bool {
    value.starts_with("env:") || value.starts_with("file:")
}

/// Whether the value of a header can be sent as it is written.
pub fn is_sendable(value: &str) -> bool {
    value.chars().all(|c| c == '\t' || (' '..='~').contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_break_a_message_or_are_none_are_refused() {
        for name in
            ["Host", "content-length", "Transfer-Encoding", "CONNECTION", "x y", "x:", "", "é", "a\r\nb", "Accept"]
        {
            assert!(name_fault(name).is_some(), "{name}");
        }
        for name in ["X-Org", "anthropic-version", "User-Agent", "Authorization", "OpenAI-Organization", "x_key"] {
            assert_eq!(name_fault(name), None, "{name}");
        }
    }
}
