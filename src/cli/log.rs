//! The log on stderr. A server writes it at the level `info`; other commands write none, unless `LOOPCTL_LOG` says what is to be
//! logged. An event is one line, whatever its texts contain, and secrets are hidden as in traces.

mod layer;
mod line;
mod repeats;
mod sink;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use clap::ValueEnum;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::{FilterExt as _, FilterFn};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use self::layer::LogLayer;
use self::sink::LogOutput;
use super::surface::Surface;
use crate::trace::Tone;

/// The variable that sets what is logged: a level, or `target=level` as in other Rust programs.
const VARIABLE: &str = "LOOPCTL_LOG";
/// The variable that sets the format of a server's log, unless `--log-format` does.
const FORMAT_VARIABLE: &str = "LOOPCTL_LOG_FORMAT";
/// What a server logs unless the variable says otherwise.
const SERVER_DEFAULT: &str = "info";

/// The format of the log
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// A line of words for people
    #[default]
    Text,
    /// A JSON object on each line
    Json,
}

/// Which process logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoggedProcess {
    /// A server logs for as long as it runs: equal warnings are counted, and a reader of the log that is slow never stops a run.
    /// Its format, if an argument names one.
    Server(Option<LogFormat>),
    /// A command is over soon, and each of its lines is about something that happened to it.
    Command,
}

/// The log of this process.
struct ProcessLog {
    format: LogFormat,
    output: LogOutput,
}

static LOG: OnceLock<ProcessLog> = OnceLock::new();

/// Sets up the log of the process. Only loopctl's own events are in it, not what libraries log about connections and requests.
/// Returns what is wrong with a variable that sets it: the log is then set up as without that variable.
pub fn init(process: LoggedProcess) -> Option<String> {
    let (default, argument) = match process {
        LoggedProcess::Server(argument) => (Some(SERVER_DEFAULT), argument),
        LoggedProcess::Command => (None, None),
    };
    let (filter, bad_filter) = filter(variable(VARIABLE).as_deref(), default);
    let (format, bad_format) = match process {
        LoggedProcess::Server(None) => format(variable(FORMAT_VARIABLE).as_deref()),
        _ => (argument.unwrap_or_default(), None),
    };
    let output = match process {
        LoggedProcess::Server(_) => LogOutput::queued(format),
        LoggedProcess::Command => LogOutput::direct(format),
    };
    // A second set-up in one process changes nothing.
    if let (Some(filter), Ok(())) = (filter, LOG.set(ProcessLog { format, output }))
        && let Some(log) = LOG.get()
    {
        // A target begins with the name of its crate: `loopctl`, or an inner one such as `loopctl_runtime`.
        let own = FilterFn::new(|event| event.target().starts_with(env!("CARGO_PKG_NAME")));
        // What the process says of itself, why it ends above all, is written whatever is logged.
        let announced = FilterFn::new(|event| event.target() == module_path!()).with_max_level_hint(LevelFilter::INFO);
        let layer = LogLayer::new(&log.output).with_filter(filter.or(announced)).with_filter(own);
        let _ = tracing_subscriber::registry().with(layer).try_init();
    }
    bad_filter.or(bad_format)
}

/// Writes what the log still holds. To be called before the process ends.
pub fn finish() {
    if let Some(log) = LOG.get() {
        log.output.finish();
    }
}

/// Reports something about the process itself: where the log is JSON, as one of its lines, so that nothing else is in it.
pub fn announce(surface: &Surface, text: &str) {
    match is_json() {
        true => tracing::info!("{}", text.trim_end()),
        false => say(surface, text),
    }
}

/// Reports what is wrong with the settings of the process: as [`announce`], and as a warning.
pub fn announce_warning(surface: &Surface, text: &str) {
    match is_json() {
        true => tracing::warn!("{text}"),
        false => say(surface, &surface.line(Tone::Warn, "warning", text)),
    }
}

/// Reports why the process ends: as [`announce`], and as an error.
pub fn announce_error(surface: &Surface, text: &str) {
    match is_json() {
        true => tracing::error!("{}", text.trim_end()),
        false => say(surface, text),
    }
}

/// Who does not read the log must not stop the process.
fn say(surface: &Surface, text: &str) {
    match LOG.get() {
        Some(log) => log.output.say(surface, text),
        None => surface.say(text),
    }
}

fn is_json() -> bool {
    LOG.get().is_some_and(|log| log.format == LogFormat::Json)
}

/// A variable of the environment that is not empty.
#[expect(clippy::disallowed_methods, reason = "the log is set before anything else")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// What is logged; none for no log. And what is wrong with the variable.
fn filter(written: Option<&str>, default: Option<&str>) -> (Option<EnvFilter>, Option<String>) {
    let read = |directives: &str| EnvFilter::builder().parse(directives);
    let otherwise = || default.and_then(|default| read(default).ok());
    match written.map(read) {
        None => (otherwise(), None),
        Some(Ok(filter)) => (Some(filter), None),
        Some(Err(error)) => {
            let help = "write a level (`error`, `warn`, `info`, `debug`, `trace`, `off`), or a list like \
                        `info,loopctl::serve::middleware=debug`";
            (otherwise(), Some(format!("{VARIABLE} can't be read: {error}; {help}")))
        }
    }
}

/// The format that the variable names, and what is wrong with it.
fn format(written: Option<&str>) -> (LogFormat, Option<String>) {
    let Some(written) = written else { return (LogFormat::default(), None) };
    match LogFormat::from_str(written, true) {
        Ok(format) => (format, None),
        Err(_) => (LogFormat::default(), Some(format!("{FORMAT_VARIABLE} is `{written}`: write `text` or `json`"))),
    }
}
