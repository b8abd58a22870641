//! A server of OpenAI's chat-completions protocol for benchmarks. It plays one script, which the model's name
//! `mock-k<K>-l<MS>` sets: call `echo` K times with changing text, then complete; each reply comes after MS
//! milliseconds. With the suffix `-d<DIALECT>` it uses another dialect than `json`; with `-aprogress` it calls
//! the built-in `__log_progress__` instead of `echo`, with `-ahuman` it asks a human.
//!
//! Its replies depend on the request alone, it keeps no state of a run, and it does as little as it can: it
//! does not parse JSON, it searches for two byte strings. Its own cost is in no figure. `GET /stats` returns
//! how many requests and body bytes have come since the last such request, to show that two peers have sent the
//! same.
#![expect(clippy::print_stdout, reason = "the port is what the caller reads")]

use std::cell::Cell;
use std::error::Error;
use std::io::Write;
use std::rc::Rc;
use std::time::Duration;

use clap::Parser;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

/// An OpenAI-protocol server that plays one plot.
#[derive(Parser)]
struct Arguments {
    /// The port; 0 takes a free one. It is printed on stdout.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// What `cargo bench` adds to every program.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A request whole in the buffer.
struct Request {
    head: usize,
    end: usize,
}

#[derive(Default)]
struct Stats {
    requests: Cell<u64>,
    bytes: Cell<u64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, serve(arguments.port))
}

async fn serve(port: u16) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::from_std({
        let listener = std::net::TcpListener::bind(("127.0.0.1", port))?;
        listener.set_nonblocking(true)?;
        listener
    })?;
    println!("{}", listener.local_addr()?.port());
    std::io::stdout().flush()?;
    let stats = Rc::new(Stats::default());
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let stats = Rc::clone(&stats);
        // A connection that breaks is its client's matter.
        tokio::task::spawn_local(async move { drop(converse(stream, &stats).await) });
    }
}

/// One connection: request, answer, and again.
async fn converse(mut stream: TcpStream, stats: &Stats) -> std::io::Result<()> {
    let mut buffer: Vec<u8> = Vec::with_capacity(16 * 1024);
    loop {
        let request = loop {
            if let Some(request) = whole(&buffer) {
                break request;
            }
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        let head = buffer.get(..request.head).unwrap_or_default();
        let body = buffer.get(request.head..request.end).unwrap_or_default();
        let (wait, answer) = if head.starts_with(b"POST") {
            stats.requests.set(stats.requests.get() + 1);
            stats.bytes.set(stats.bytes.get() + u64::try_from(body.len()).unwrap_or(0));
            completion(body)
        } else {
            let counts = format!("{{\"requests\":{},\"bytes\":{}}}", stats.requests.take(), stats.bytes.take());
            (0, counts)
        };
        if wait > 0 {
            tokio::time::sleep(Duration::from_millis(wait)).await;
        }
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{answer}",
            answer.len()
        );
        stream.write_all(answer.as_bytes()).await?;
        buffer.drain(..request.end);
    }
}

/// The first request of the buffer, when all of it is there.
fn whole(buffer: &[u8]) -> Option<Request> {
    let head = find(buffer, b"\r\n\r\n")? + 4;
    let length = std::str::from_utf8(buffer.get(..head)?)
        .ok()?
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse::<usize>().ok())
        .unwrap_or(0);
    (buffer.len() >= head + length).then_some(Request { head, end: head + length })
}

/// The milliseconds to wait, and the answer.
fn completion(body: &[u8]) -> (u64, String) {
    let Plot { steps, wait, dialect, action } =
        plot(body).unwrap_or(Plot { steps: 1, wait: 0, dialect: "json", action: "echo" });
    let done = count(body, b"\"role\":\"assistant\"");
    let message = if done < steps { calls((dialect, action), done + 1, steps) } else { ends(dialect, steps) };
    let answer = format!(
        concat!(
            r#"{{"id":"mock","object":"chat.completion","created":0,"model":"mock","choices":[{{"index":0,"#,
            r#""message":{{"role":"assistant",{}}},"finish_reason":"stop"}}],"#,
            r#""usage":{{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{}}}}}"#
        ),
        message,
        body.len() / 4,
        message.len() / 4,
        body.len() / 4 + message.len() / 4
    );
    (wait, answer)
}

/// The members of the message that makes a call. What a text dialect says is JSON in a JSON string.
fn calls((dialect, action): (&str, &str), step: usize, steps: usize) -> String {
    let (name, member) = match action {
        "progress" => ("__log_progress__", "message"),
        "human" => ("__pause_for_human__", "question"),
        _ => ("echo", "text"),
    };
    let thought = format!("Step {step} of {steps}: I call echo with the next text and read what comes back.");
    let input = format!(r#"{{\"{member}\":\"step {step} says {}\"}}"#, step * 7919 % 100_003);
    match dialect {
        "tags" => format!(
            r#""content":"<think>\n{thought}\n</think>\n<tool_call>\n{{\"name\":\"{name}\",\"arguments\":{input}}}\n</tool_call>""#
        ),
        "tool_calls" | "final_answer" => format!(
            r#""content":"{thought}","tool_calls":[{{"id":"call_{step}","type":"function","function":{{"name":"{name}","arguments":"{input}"}}}}]"#
        ),
        _ => {
            format!(r#""content":"{{\"thought\":\"{thought}\",\"action\":\"{name}\",\"action_input\":{input}}}""#)
        }
    }
}

/// The members of the message that ends a run.
fn ends(dialect: &str, steps: usize) -> String {
    let answer = format!("Done after {steps} steps.");
    match dialect {
        "tags" => format!(r#""content":"<think>\nAll steps are made.\n</think>\n<answer>\n{answer}\n</answer>""#),
        "tool_calls" => format!(r#""content":"{answer}""#),
        "final_answer" => format!(r#""content":"All steps are made.\nFINAL_ANSWER: {answer}""#),
        _ => format!(
            concat!(
                r#""content":"{{\"thought\":\"All steps are made.\",\"action\":\"__complete__\","#,
                r#"\"action_input\":{{\"answer\":\"{}\",\"confidence\":1.0}}}}""#
            ),
            answer
        ),
    }
}

/// What the name of the model asks for.
struct Plot<'a> {
    steps: usize,
    wait: u64,
    dialect: &'a str,
    action: &'a str,
}

/// The plot of the model's name.
fn plot(body: &[u8]) -> Option<Plot<'_>> {
    let marker = b"\"model\":\"mock-k";
    let begin = find(body, marker)? + marker.len();
    let rest = body.get(begin..body.len().min(begin + 60))?;
    let name = std::str::from_utf8(rest.split(|byte| *byte == b'"').next()?).ok()?;
    let (steps, wait) = name.split_once("-l")?;
    let mut more = wait.split('-');
    let mut plot =
        Plot { steps: steps.parse().ok()?, wait: more.next()?.parse().ok()?, dialect: "json", action: "echo" };
    for part in more {
        match (part.strip_prefix('d'), part.strip_prefix('a')) {
            (Some(dialect), _) => plot.dialect = dialect,
            (None, Some(action)) => plot.action = action,
            (None, None) => {}
        }
    }
    Some(plot)
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    let first = what.first()?;
    let mut from = 0;
    loop {
        from += text.get(from..)?.iter().position(|byte| byte == first)?;
        if text.get(from..)?.starts_with(what) {
            return Some(from);
        }
        from += 1;
    }
}

fn count(text: &[u8], what: &[u8]) -> usize {
    let mut found = 0;
    let mut rest = text;
    while let Some(at) = find(rest, what) {
        found += 1;
        rest = rest.get(at + what.len()..).unwrap_or_default();
    }
    found
}
