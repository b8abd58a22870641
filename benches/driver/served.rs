//! A `loopctl serve` process for the load driver, and the client that asks it.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeValLike;
use nix::unistd::Pid;
use serde_json::{Value, json};

/// A running server; it is killed when it is dropped.
pub struct Served {
    child: Child,
    client: Client,
    // The server would get an error if nobody read its output.
    _stdout: BufReader<ChildStdout>,
}

/// Asks a server, with connections that are kept.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
}

impl Served {
    /// Serves `folder` on a free port, its runs in `store`, so many at once.
    pub fn start(program: &Path, folder: &Path, store: &str, most: u32) -> Result<Self, Box<dyn Error>> {
        let most = most.to_string();
        let mut child = Command::new(program)
            .args(["serve", ".", "--listen", "127.0.0.1:0", "--store", store, "--max-concurrent-runs", &most])
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{} can't be started: {error}", program.display()))?;
        let mut stdout = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        let mut base = String::new();
        stdout.read_line(&mut base)?;
        let base = base.trim().to_owned();
        if base.is_empty() {
            return Err(format!("`{} serve` does not serve", program.display()).into());
        }
        // The address is plain http: the provider is never used, and reqwest wants one.
        drop(rustls::crypto::ring::default_provider().install_default());
        let http = reqwest::Client::builder().no_proxy().tcp_nodelay(true).pool_max_idle_per_host(usize::MAX);
        Ok(Self { child, client: Client { http: http.build()?, base }, _stdout: stdout })
    }

    /// What asks it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The resident memory in MB, as Linux reports it.
    pub fn resident_mb(&self) -> Result<f64, Box<dyn Error>> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kilobytes / 1024.0)
    }

    /// Ends it in an orderly way.
    pub fn end(mut self) -> Result<(), Box<dyn Error>> {
        kill(Pid::from_raw(i32::try_from(self.child.id())?), Signal::SIGTERM)?;
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the server ended with {status}").into()) }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended: then there is nothing to do.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The seconds of CPU and the peak of memory in MB of the servers that have ended.
pub fn ended() -> Result<(f64, f64), Box<dyn Error>> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let cpu = i32::try_from((usage.user_time() + usage.system_time()).num_microseconds() / 100)?;
    Ok((f64::from(cpu) / 10_000.0, f64::from(i32::try_from(usage.max_rss())?) / 1024.0))
}

impl Client {
    /// Starts a loop and waits until it ends or waits for a human; the answer.
    pub async fn execute(&self, name: &str) -> Result<Value, String> {
        let body = json!({ "loop": name, "input": {} }).to_string();
        let request = self.http.post(format!("{}/agents/execute", self.base));
        read(request.header("content-type", "application/json").body(body)).await
    }

    /// The reply to a GET of this address.
    pub async fn get(&self, target: &str) -> Result<Value, String> {
        read(self.http.get(format!("{}{target}", self.base))).await
    }
}

async fn read(request: reqwest::RequestBuilder) -> Result<Value, String> {
    let text = |error: reqwest::Error| error.to_string();
    let answer = request.send().await.map_err(text)?;
    let status = answer.status();
    let body = answer.bytes().await.map_err(text)?;
    if status.as_u16() != 200 {
        return Err(format!("{status}: {}", String::from_utf8_lossy(&body)));
    }
    serde_json::from_slice(&body).map_err(|error| error.to_string())
}
