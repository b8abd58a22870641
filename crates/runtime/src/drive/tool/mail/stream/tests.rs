//! The connection to a server of mail: what is sent to one that encrypts, and to one that does not.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use lettre::Message;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use super::*;
use crate::drive::tool::mail::smtp::{self, MailLogin};

/// An authority that nobody trusts, and a certificate of it for `localhost`, from 2020 until 2126.
const AUTHORITY: &str = "\
-----BEGIN CERTIFICATE-----
MIIBUDCB96ADAgECAgEBMAoGCCqGSM49BAMCMBcxFTATBgNVBAMMDGxvb3BjdGwg
dGVzdDAgFw0yMDAxMDEwMDAwMDBaGA8yMTI2MDEwMTAwMDAwMFowFzEVMBMGA1UE
AwwMbG9vcGN0bCB0ZXN0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEfiW/D/V
EUFTZSAwXn8z6nR4Bfg9SkMuQm4sD+CMOhrWWoeOJA6GjUurXQdqojebrUcq8FHX
dc5tQr+J7mjSE6MyMDAwDwYDVR0TAQH/BAUwAwEB/zAdBgNVHQ4EFgQU46/isioE
aa34MBWIClOVqdKfxckwCgYIKoZIzj0EAwIDSAAwRQIgMou/eVftvweK4YcePO0F
U9za4UsT8YhwCn1jLH805JkCIQD0gD0Gm0o7+muzdkgOTnVFbSCKd8D5TLUh95m3
Ve/9ZA==
-----END CERTIFICATE-----";
const CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----
MIIBdDCCARqgAwIBAgIBAjAKBggqhkjOPQQDAjAXMRUwEwYDVQQDDAxsb29wY3Rs
IHRlc3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyNjAxMDEwMDAwMDBaMBQxEjAQBgNV
BAMMCWxvY2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABP3Xd62ipSvm
M6ctaeoyuDm1RqSZFbngQAWisa0tu1wl80by5pOinGWCUVZkO/0Op7JhMXsK8eBf
37Qt3D5J+f6jWDBWMBQGA1UdEQQNMAuCCWxvY2FsaG9zdDAdBgNVHQ4EFgQUhsDZ
Py21ZicgECHNSEOL26iW/igwHwYDVR0jBBgwFoAU46/isioEaa34MBWIClOVqdKf
xckwCgYIKoZIzj0EAwIDSAAwRQIgFjcoGig4HQ3DSK5MAnR3wFYT/bOxJ4MJNVPP
Qzh985kCIQDFheyniPCsBteOSPGo7P4j2r2ONM2uHIcSLR/WxUe5pg==
-----END CERTIFICATE-----";
const KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgZASkVDLaLgrAUV4x
cqwbB7Rn59y1ytg4OiZycqysV7+hRANCAAT913etoqUr5jOnLWnqMrg5tUakmRW5
4EAForGtLbtcJfNG8uaTopxlglFWZDv9DqeyYTF7CvHgX9+0Ldw+Sfn+
-----END PRIVATE KEY-----";

/// What the server says to `STARTTLS`; and before that, to the greeting.
struct Says {
    greeting: &'static str,
    hello: &'static str,
    start: &'static str,
}

const SOUND: Says = Says {
    greeting: "220 mail.example.com ready\r\n",
    hello: "250-mail.example.com\r\n250-SIZE 1000\r\n250 starttls\r\n",
    start: "220 go ahead\r\n",
};

/// Takes one connection, and says what it was sent in clear text and over TLS.
fn server(says: Says, is_encrypted_at_once: bool) -> (MailServer, Receiver<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, heard) = channel();
    std::thread::spawn(move || {
        let stream = listener.accept().unwrap().0;
        let mut lines = Vec::new();
        if is_encrypted_at_once || in_clear_text(&stream, &says, &mut lines).is_some() {
            let _ = over_tls(stream, says.greeting, is_encrypted_at_once, &mut lines);
        }
        sender.send(lines).unwrap();
    });
    (MailServer { host: "localhost".to_owned(), port, is_encrypted_at_once }, heard)
}

fn in_clear_text(mut stream: &std::net::TcpStream, says: &Says, lines: &mut Vec<String>) -> Option<()> {
    // A server may be heard no longer before it has said all.
    let _ = stream.write_all(says.greeting.as_bytes());
    let mut one = [0];
    for answer in [says.hello, says.start] {
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            stream.read_exact(&mut one).ok()?;
            line.extend(one);
        }
        lines.push(format!("clear {}", String::from_utf8(line).unwrap().trim_end()));
        let _ = stream.write_all(answer.as_bytes());
    }
    Some(())
}

fn over_tls(stream: std::net::TcpStream, greeting: &str, greets: bool, lines: &mut Vec<String>) -> std::io::Result<()> {
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = builder.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    let mut stream = BufReader::new(StreamOwned::new(ServerConnection::new(Arc::new(config)).unwrap(), stream));
    if greets {
        stream.get_mut().write_all(greeting.as_bytes())?;
    }
    let mut line = String::new();
    let mut is_text = false;
    while stream.read_line(&mut line)? > 0 {
        let said = std::mem::take(&mut line).trim_end().to_owned();
        let word = said.split(' ').next().unwrap_or_default().to_owned();
        lines.push(format!("tls {said}"));
        is_text &= said != ".";
        let answer = match word.as_str() {
            _ if is_text => continue,
            "EHLO" => "250-mail.example.com\r\n250 AUTH PLAIN\r\n",
            "DATA" => {
                is_text = true;
                "354 go on\r\n"
            }
            _ => "250 ok\r\n",
        };
        stream.get_mut().write_all(answer.as_bytes())?;
    }
    Ok(())
}

/// Sends a message to a server, over TLS that trusts the authority, or the certificates of this machine.
async fn sent(server: &MailServer, trusts: bool) -> Result<serde_json::Value, RawFault> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(AUTHORITY.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let own = builder.with_root_certificates(roots).with_no_client_auth();
    let peer = SocketAddr::new(IpAddr::from([127, 0, 0, 1]), server.port);
    let stream = TcpStream::connect(peer).await.unwrap();
    let stream = encrypt(server, peer, stream, if trusts { own } else { config().unwrap() }).await?;
    let login = MailLogin { user: Some("claims".to_owned()), password: Some("s3cret".to_owned()) };
    let message = Message::builder().from("a@example.com".parse().unwrap()).to("b@example.com".parse().unwrap());
    smtp::send(stream, login, &message.body("A claim was paid.".to_owned()).unwrap()).await
}

#[tokio::test]
async fn a_message_and_its_login_are_sent_over_tls_only() {
    for is_encrypted_at_once in [true, false] {
        let (server, heard) = server(SOUND, is_encrypted_at_once);
        assert_eq!(sent(&server, true).await.unwrap(), "ok", "{server:?}");
        let lines = heard.recv().unwrap();
        let clear: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("clear ")).collect();
        let expected: &[&str] = if is_encrypted_at_once { &[] } else { &["EHLO localhost", "STARTTLS"] };
        assert_eq!(clear, expected);
        for line in ["tls EHLO localhost", "tls MAIL FROM:<a@example.com>", "tls A claim was paid."] {
            assert!(lines.iter().any(|heard| heard == line), "{line}: {lines:?}");
        }
        assert!(lines.iter().any(|line| line.starts_with("tls AUTH PLAIN ")), "{lines:?}");
    }
}

#[tokio::test]
async fn a_certificate_of_nobody_is_refused_before_anything_is_said() {
    for is_encrypted_at_once in [true, false] {
        let (server, heard) = server(SOUND, is_encrypted_at_once);
        let raw = sent(&server, false).await.unwrap_err();
        assert_eq!(raw.fault.class, "no encryption", "{raw:?}");
        let lines = heard.recv().unwrap();
        assert!(lines.iter().all(|line| !line.starts_with("tls")), "{lines:?}");
    }
    // Nor one for another name.
    let (server, heard) = server(SOUND, true);
    let other = MailServer { host: "mail.example.com".to_owned(), ..server };
    assert_eq!(sent(&other, true).await.unwrap_err().fault.class, "no encryption");
    assert!(heard.recv().unwrap().is_empty());
}

#[tokio::test]
async fn a_server_that_does_not_encrypt_hears_nothing_but_that_it_is_asked_to() {
    let long: &'static str = Box::leak("220 x".repeat(1_000_000).into_boxed_str());
    let many: &'static str = Box::leak("250-more\r\n".repeat(100_000).into_boxed_str());
    for (says, class) in [
        (Says { hello: "250-mail.example.com\r\n250 SIZE 1000\r\n", ..SOUND }, "no encryption"),
        (Says { greeting: "421 later\r\n", ..SOUND }, "server not reached"),
        (Says { start: "454 TLS is not available\r\n", ..SOUND }, "server not reached"),
        (Says { greeting: "HTTP/1.1 400 Bad Request\r\n\r\n", ..SOUND }, "server not reached"),
        // What is said in clear text behind the answer is no part of what is encrypted.
        (Says { start: "220 go ahead\r\n250 injected\r\n", ..SOUND }, "no encryption"),
        (Says { greeting: long, ..SOUND }, "server not reached"),
        (Says { hello: many, ..SOUND }, "server not reached"),
    ] {
        let (server, heard) = server(says, false);
        let raw = sent(&server, true).await.unwrap_err();
        assert_eq!(raw.fault.class, class, "{raw:?}");
        let lines = heard.recv().unwrap();
        let asks = |line: &String| ["clear EHLO localhost", "clear STARTTLS"].contains(&line.as_str());
        assert!(lines.iter().all(asks), "{lines:?}");
    }
}
