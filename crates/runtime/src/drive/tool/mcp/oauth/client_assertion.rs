//! Who a client is, signed by its private key (RFC 7523): its authorization server knows the public one.

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;

use crate::drive::clock;

/// How long an assertion holds, in seconds.
const LASTS_S: i64 = 60;

/// Who asserts what to whom.
pub(super) struct ClientAssertion<'a> {
    pub client_id: &'a str,
    /// The authorization server.
    pub audience: &'a str,
    pub key_id: Option<&'a str>,
}

impl ClientAssertion<'_> {
    /// The assertion, signed by a key.
    ///
    /// # Errors
    /// When the key can't be used; the sentence has nothing of it.
    pub(super) fn signed(&self, private_key: &SecretString) -> Result<String, String> {
        let der = SecretKeyBytes::of_pem(private_key.expose_secret())
            .ok_or("`private_key` is no PKCS #8 key in PEM (-----BEGIN PRIVATE KEY-----)")?;
        let key = signing::SigningKey::of(&der.0)?;
        let mut header = json!({ "alg": key.algorithm(), "typ": "JWT" });
        if let (Some(members), Some(key_id)) = (header.as_object_mut(), self.key_id) {
            members.insert("kid".to_owned(), json!(key_id));
        }
        let now = clock::wall_ms() / 1_000;
        let claims = json!({
            "iss": self.client_id,
            "sub": self.client_id,
            "aud": self.audience,
            "iat": now,
            "exp": now.saturating_add(LASTS_S),
            "jti": uuid::Uuid::now_v7().to_string(),
        });
        let [header, claims] = [header, claims].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part.to_string()));
        let signed = format!("{header}.{claims}");
        let signature = key.sign(signed.as_bytes())?;
        Ok(format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature)))
    }
}

struct SecretKeyBytes(Vec<u8>);

impl SecretKeyBytes {
    fn of_pem(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once("-----BEGIN PRIVATE KEY-----")?;
        let (body, _) = rest.split_once("-----END PRIVATE KEY-----")?;
        // In a variable of one line, ends of lines are written as `\n`.
        let body: String = body.replace("\\n", "").split_ascii_whitespace().collect();
        BASE64_STANDARD.decode(body).ok().map(Self)
    }
}

#[cfg(feature = "http")]
mod signing {
    use ring::rand::SystemRandom;
    use ring::rsa;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256};

    /// A key that signs.
    pub(super) enum SigningKey {
        Ec(Box<EcdsaKeyPair>),
        Rsa(Box<rsa::KeyPair>),
    }

    impl SigningKey {
        pub(super) fn of(der: &[u8]) -> Result<Self, String> {
            let ec = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &SystemRandom::new());
            if let Ok(key) = ec {
                return Ok(Self::Ec(Box::new(key)));
            }
            let rsa = rsa::KeyPair::from_pkcs8(der).map(|key| Self::Rsa(Box::new(key)));
            rsa.map_err(|_| {
                "`private_key` is neither an EC key on P-256 nor an RSA key of 2048 to 8192 bits".to_owned()
            })
        }

        pub(super) fn algorithm(&self) -> &'static str {
            match self {
                Self::Ec(_) => "ES256",
                Self::Rsa(_) => "RS256",
            }
        }

        pub(super) fn sign(&self, text: &[u8]) -> Result<Vec<u8>, String> {
            let random = SystemRandom::new();
            let signature = match self {
                Self::Ec(key) => key.sign(&random, text).map(|signature| signature.as_ref().to_vec()),
                Self::Rsa(key) => {
                    let mut signature = vec![0; key.public().modulus_len()];
                    key.sign(&RSA_PKCS1_SHA256, &random, text, &mut signature).map(|()| signature)
                }
            };
            signature.map_err(|_| "`private_key` can't sign".to_owned())
        }
    }
}

#[cfg(not(feature = "http"))]
mod signing {
    use std::convert::Infallible;

    /// No key: there is no client that would send what it signs.
    pub(super) struct SigningKey(Infallible);

    impl SigningKey {
        pub(super) fn of(_: &[u8]) -> Result<Self, String> {
            Err(crate::drive::http_client::NOT_BUILT_IN.to_owned())
        }

        pub(super) fn algorithm(&self) -> &'static str {
            match self.0 {}
        }

        pub(super) fn sign(&self, _: &[u8]) -> Result<Vec<u8>, String> {
            match self.0 {}
        }
    }
}
