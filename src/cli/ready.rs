//! `loopctl ready`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use clap::Args;
use reqwest::{Client, Response, StatusCode};
use serde_json::Value;

use super::exit::Exit;
use super::failure::CommandError;
use super::serve::address;
use super::surface::Surface;
use crate::engine::json;
use crate::trace::escape;

/// The longest time for the question and its answer: a server asks its store for 1.5 seconds at most.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The most bytes of an answer that are read.
const ANSWER_BYTES: usize = 64 << 10;

/// Ask a server whether it takes work
///
/// Asks for /readyz. The exit code is 0 if the server is ready, and 1 if it is not or does not answer: a health check of
/// containers without a shell and without a token.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl ready
  loopctl ready 0.0.0.0:8080")]
pub struct ReadyCommand {
    /// The address that the server listens on
    #[arg(value_name = "ADDR", default_value = "127.0.0.1:3009", value_parser = address)]
    pub server: SocketAddr,
}

impl ReadyCommand {
    /// Asks the server.
    ///
    /// # Errors
    /// When no client can be made, or stdout can't be written.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let server = reached_at(self.server);
        // Fails when one is there already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(ANSWER_TIMEOUT)
            .tls_certs_only([])
            .build()
            .map_err(|error| CommandError::usage(format!("no HTTP client can be made: {error}")))?;
        let (status, body) = match ask(&client, server).await {
            Ok(answer) => answer,
            Err(error) if error.is_timeout() => {
                let seconds = ANSWER_TIMEOUT.as_secs();
                surface.say(&format!("not ready: {server} did not answer within {seconds} seconds\n"));
                return Ok(Exit::Failed);
            }
            Err(_) => {
                surface.say(&format!("not ready: no server answers at {server}: `loopctl serve` starts one\n"));
                return Ok(Exit::Failed);
            }
        };
        if status == StatusCode::OK && word(&body) == Some("ready") {
            surface.print("ready\n")?;
            return Ok(Exit::Completed);
        }
        surface.say(&format!("not ready: {}\n", escape::line(&why(status, &body))));
        Ok(Exit::Failed)
    }
}

/// The address of this machine at which a server that listens on all addresses is reached.
fn reached_at(listened: SocketAddr) -> SocketAddr {
    let ip = match listened.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listened.port())
}

/// The status of the answer, and its body: null if that is no JSON or is too long.
async fn ask(client: &Client, server: SocketAddr) -> Result<(StatusCode, Value), reqwest::Error> {
    let answer = client.get(format!("http://{server}/readyz")).send().await?;
    let status = answer.status();
    let body = read(answer).await?;
    Ok((status, json::from_bytes(&body).unwrap_or_default()))
}

/// The body of an answer, as long as it may be.
async fn read(mut answer: Response) -> Result<Vec<u8>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(part) = answer.chunk().await? {
        body.extend_from_slice(&part);
        if body.len() > ANSWER_BYTES {
            return Ok(Vec::new());
        }
    }
    Ok(body)
}

/// What the server says of itself.
fn word(body: &Value) -> Option<&str> {
    body.get("status").and_then(Value::as_str)
}

/// What the server says that it lacks.
fn why(status: StatusCode, body: &Value) -> String {
    match word(body) {
        Some("store") => "its store can't be read".to_owned(),
        Some("draining") => "it stops".to_owned(),
        Some("missing") => {
            let names = body.get("missing").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
            format!("its loops lack {}", names.collect::<Vec<_>>().join(", "))
        }
        _ => format!("it answers {} to /readyz, as no server of loopctl does", status.as_u16()),
    }
}
