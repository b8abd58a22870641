//! Hosts of Amazon Bedrock: what their names say of the region and the service that a request is signed for.

/// What the names of AWS's hosts end with.
const ENDS: [&str; 3] = [".amazonaws.com", ".amazonaws.com.cn", ".api.aws"];

/// The service that requests to Bedrock are signed for.
pub const BEDROCK: &str = "bedrock";

/// The headers of a signed request that say when it was signed, and hold the token of credentials that expire.
pub const DATE: &str = "x-amz-date";
/// See [`DATE`].
pub const TOKEN: &str = "x-amz-security-token";

/// The headers that a signature consists of.
pub const SIGNATURE_HEADERS: [&str; 3] = ["authorization", DATE, TOKEN];

/// A host of Amazon Bedrock. Nobody else can own such a name, so that AWS's credentials may sign requests to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BedrockHost<'t> {
    /// The service that requests are signed for.
    pub service: &'static str,
    /// The region, if the name has one.
    pub region: Option<&'t str>,
}

impl<'t> BedrockHost<'t> {
    /// Reads a name in lower case: `bedrock-runtime.eu-central-1.amazonaws.com`, or that of an endpoint in a VPC,
    /// `vpce-1.bedrock-runtime.eu-central-1.vpce.amazonaws.com`.
    pub fn of(host: &'t str) -> Option<Self> {
        let host = host.strip_suffix('.').unwrap_or(host);
        let name = ENDS.iter().find_map(|end| host.strip_suffix(end))?;
        // A name that somebody chose, such as that of a bucket, comes before that of the service.
        let (name, is_vpc) = name.strip_suffix(".vpce").map_or((name, false), |name| (name, true));
        let mut labels = name.rsplit('.');
        let last = labels.next()?;
        let (region, service) = if is_region(last) { (Some(last), labels.next()?) } else { (None, last) };
        if !is_vpc && labels.next().is_some() {
            return None;
        }
        let service = match service.strip_suffix("-fips").unwrap_or(service) {
            "bedrock-mantle" => "bedrock-mantle",
            "bedrock-runtime" | "bedrock" => BEDROCK,
            _ => return None,
        };
        Some(Self { service, region })
    }
}

/// Whether a label is a region: `eu-central-1`, `us-gov-west-1`.
pub fn is_region(label: &str) -> bool {
    let words: Vec<&str> = label.split('-').collect();
    let is_word = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    match words.split_last() {
        Some((number, words)) => {
            matches!(words.len(), 2..=4)
                && words.iter().all(is_word)
                && matches!(number.len(), 1..=2)
                && number.bytes().all(|byte| byte.is_ascii_digit())
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_bedrock_say_their_region_and_service() {
        for (host, service, region) in [
            ("bedrock-runtime.eu-central-1.amazonaws.com", "bedrock", Some("eu-central-1")),
            ("bedrock-runtime-fips.us-gov-west-1.amazonaws.com", "bedrock", Some("us-gov-west-1")),
            ("bedrock-runtime.cn-north-1.amazonaws.com.cn", "bedrock", Some("cn-north-1")),
            ("bedrock-mantle.us-east-1.api.aws", "bedrock-mantle", Some("us-east-1")),
            ("vpce-0a-b1.bedrock-runtime.us-east-1.vpce.amazonaws.com", "bedrock", Some("us-east-1")),
            ("bedrock-runtime.amazonaws.com.", "bedrock", None),
        ] {
            assert_eq!(BedrockHost::of(host), Some(BedrockHost { service, region }), "{host}");
        }
    }

    #[test]
    fn hosts_that_anybody_can_own_are_not_hosts_of_bedrock() {
        for host in [
            "",
            "amazonaws.com",
            "api.aws",
            "localhost",
            "127.0.0.1",
            "bedrock-runtime.us-east-1.amazonaws.com.example.com",
            "bedrock-runtime.us-east-1.evilamazonaws.com",
            "bedrock-runtime.us-east-1.s3.amazonaws.com",
            "bedrock-runtime.s3.us-east-1.amazonaws.com",
            "bucket.bedrock-runtime.us-east-1.amazonaws.com",
            "x.execute-api.us-east-1.amazonaws.com",
            "ec2-1-2-3-4.compute-1.amazonaws.com",
            "sts.amazonaws.com",
        ] {
            assert_eq!(BedrockHost::of(host), None, "{host}");
        }
    }
}
