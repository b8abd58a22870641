//! The command line: one file a command, whose doc comment is its help.

mod audit;
mod cancel;
mod check;
mod completions;
mod decide_commands;
mod demo;
mod diff;
mod earlier_run;
mod estimate;
mod event;
mod exit;
mod explain;
mod export;
mod failure;
mod fmt;
mod follow;
mod foreground_wait;
mod fork;
mod found_documents;
mod import;
mod init;
mod input;
mod interactive;
mod limits;
mod log;
mod loops;
mod man;
mod many_runs;
mod mcp;
mod model_wait;
mod models;
mod named_document;
mod new_files;
mod next_commands;
mod openapi;
mod output;
mod output_file;
mod pause_program;
mod process;
mod progress;
mod prompt;
mod ready;
mod record;
mod recorded_run;
mod remedies;
mod replay;
pub mod report;
mod rerun;
#[cfg(feature = "restate")]
pub mod restate;
mod resume;
mod retry;
mod run;
mod run_document;
mod run_drive;
mod run_filter;
mod runs;
mod schema;
mod serve;
mod signals;
mod stats;
mod store;
mod store_admin;
mod surface;
mod table_column;
mod telemetry;
mod test;
mod token;
mod trace;
mod tune;
mod watch;
mod worker_threads;
mod workers;

use std::borrow::Cow;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};

use exit::Exit;
use failure::CommandError;
use surface::Surface;

use crate::drive::tool::servers_ended;
use crate::trace::escape;

/// Check, run and serve agent loops that are declared in JSON
#[derive(Debug, Parser)]
#[command(name = "loopctl", version, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 completed, 1 failed, 2 no run started, 3 waits for a human, 75 the store is away, 130 cancelled.
Run `loopctl COMMAND --help` for the details of a command, with examples."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
enum Command {
    Run(run::RunCommand),
    Demo(demo::DemoCommand),
    Init(init::InitCommand),
    Check(check::CheckCommand),
    Fmt(fmt::FmtCommand),
    Test(test::TestCommand),
    Explain(explain::ExplainCommand),
    Estimate(estimate::EstimateCommand),
    Models(models::ModelsCommand),
    Resume(Box<resume::ResumeCommand>),
    Retry(retry::RetryCommand),
    Rerun(rerun::RerunCommand),
    Replay(replay::ReplayCommand),
    Fork(Box<fork::ForkCommand>),
    Diff(diff::DiffCommand),
    Record(record::RecordCommand),
    Tune(tune::TuneCommand),
    Cancel(cancel::CancelCommand),
    Event(event::EventCommand),
    Runs(runs::RunsCommand),
    Stats(Box<stats::StatsCommand>),
    Audit(audit::AuditCommand),
    Loops(loops::LoopsCommand),
    Trace(trace::TraceCommand),
    Export(export::ExportCommand),
    Import(import::ImportCommand),
    Serve(serve::ServeCommand),
    Ready(ready::ReadyCommand),
    Store(store_admin::StoreCommand),
    Workers(workers::WorkersCommand),
    Token(token::TokenCommand),
    Mcp(mcp::McpCommand),
    #[command(name = "openapi")]
    OpenApi(openapi::OpenApiCommand),
    Prompt(prompt::PromptCommand),
    Schema(schema::SchemaCommand),
    Completions(completions::CompletionsCommand),
    #[command(hide = true)]
    Man(man::ManCommand),
}

/// The program: parses the arguments, performs the command, reports errors, returns the exit code.
pub fn main() -> ExitCode {
    if let Some(code) = crate::drive::tool::enter_group() {
        return code;
    }
    panic::set_hook(Box::new(|fault| report_panic(fault.location())));
    let done = panic::catch_unwind(AssertUnwindSafe(|| {
        let arguments = Arguments::try_parse();
        let fault = log::init(match &arguments {
            Ok(Arguments { command: Command::Serve(serve) }) => log::LoggedProcess::Server(serve.log_format),
            Ok(Arguments { command: Command::Mcp(mcp) }) if mcp.serves() => log::LoggedProcess::Server(None),
            _ => log::LoggedProcess::Command,
        });
        match arguments {
            Ok(arguments) => perform(arguments.command, fault),
            Err(error) => report_arguments(error),
        }
    }));
    log::finish();
    done.unwrap_or(Exit::Failed).into()
}

/// `log_fault`: what is wrong with a variable that sets the log.
fn perform(command: Command, log_fault: Option<String>) -> Exit {
    let surface = Surface::of_process();
    if let Some(fault) = log_fault {
        log::announce_warning(&surface, &fault);
    }
    wait(command, &surface).unwrap_or_else(|failure| {
        log::announce_error(&surface, &failure.shown(&surface));
        failure.exit()
    })
}

/// Performs a command to its end.
fn wait(command: Command, surface: &Surface) -> Result<Exit, CommandError> {
    if matches!(
        command,
        Command::Run(_)
            | Command::Demo(_)
            | Command::Resume(_)
            | Command::Retry(_)
            | Command::Rerun(_)
            | Command::Fork(_)
            | Command::Serve(_)
            | Command::Mcp(_)
    ) {
        process::keep_private();
    }
    // Each scenario has a runtime of its own.
    match &command {
        Command::Test(test) => return test.perform(surface),
        Command::Init(init) => return init.perform(surface),
        _ => {}
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| CommandError::usage(format!("no threads can be started: {error}")))?;
    let done = runtime.block_on(async {
        // Kept until the command is done.
        let _handled = signals::survive_file_limit();
        let done = match command {
            Command::Run(run) => run.perform(surface).await,
            Command::Demo(demo) => demo.perform(surface).await,
            Command::Check(check) => check.perform(surface),
            Command::Init(init) => init.perform(surface),
            Command::Fmt(fmt) => fmt.perform(surface),
            Command::Test(test) => test.perform(surface),
            Command::Explain(explain) => explain.perform(surface).await,
            Command::Estimate(estimate) => estimate.perform(surface).await,
            Command::Models(models) => models.perform(surface),
            Command::Resume(resume) => resume.perform(surface).await,
            Command::Retry(retry) => retry.perform(surface).await,
            Command::Rerun(rerun) => rerun.perform(surface).await,
            Command::Replay(replay) => replay.perform(surface).await,
            Command::Fork(fork) => fork.perform(surface).await,
            Command::Tune(tune) => tune.perform(surface).await,
            Command::Diff(diff) => diff.perform(surface).await,
            Command::Record(record) => record.perform(surface).await,
            Command::Cancel(cancel) => cancel.perform(surface).await,
            Command::Event(event) => event.perform(surface).await,
            Command::Runs(runs) => runs.perform(surface).await,
            Command::Stats(stats) => stats.perform(surface).await,
            Command::Audit(audit) => audit.perform(surface).await,
            Command::Loops(loops) => loops.perform(surface).await,
            Command::Trace(trace) => trace.perform(surface).await,
            Command::Export(export) => export.perform(surface).await,
            Command::Import(import) => import.perform(surface).await,
            Command::Serve(serve) => serve.perform(surface).await,
            Command::Ready(ready) => ready.perform(surface).await,
            Command::Store(store) => store.perform(surface).await,
            Command::Workers(workers) => workers.perform(surface).await,
            Command::Token(token) => token.perform(surface),
            Command::Mcp(mcp) => mcp.perform(surface).await,
            Command::OpenApi(openapi) => openapi.perform(surface),
            Command::Prompt(prompt) => prompt.perform(surface).await,
            Command::Schema(schema) => schema.perform(surface),
            Command::Completions(completions) => completions.perform(surface),
            Command::Man(man) => man.perform(),
        };
        servers_ended().await;
        done
    });
    // A thread that still waits for a name server or for stdin must not delay the exit.
    runtime.shutdown_timeout(Duration::from_millis(200));
    done
}

/// Help goes to stdout and is no error; wrong arguments are.
fn report_arguments(mut error: clap::Error) -> Exit {
    if let Some(tip) = tip(&error) {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    for (kind, shown) in escaped(&error) {
        error.insert(kind, shown);
    }
    let text = error.render().to_string();
    // The message repeats the arguments: if they could control the terminal, it is printed without colours.
    if text.contains(escape::is_hidden) {
        Surface::of_process().say(&escape::terminal(&text));
    } else {
        // A reader that has gone away is no error.
        let _ = error.print();
    }
    if error.use_stderr() { Exit::NoRun } else { Exit::Completed }
}

/// The arguments of a message that would control a terminal or break a line, in their escaped form.
fn escaped(error: &clap::Error) -> Vec<(ContextKind, ContextValue)> {
    let line = |text: &str| match escape::line(text) {
        Cow::Owned(shown) => Some(shown),
        Cow::Borrowed(_) => None,
    };
    let shown = |(kind, value): (ContextKind, &ContextValue)| match value {
        ContextValue::String(text) => Some((kind, ContextValue::String(line(text)?))),
        ContextValue::StyledStrs(tips) => {
            let odd = tips.iter().any(|tip| line(&tip.to_string()).is_some());
            let tips = tips.iter().map(|tip| escape::line(&tip.to_string()).into_owned().into());
            odd.then(|| (kind, ContextValue::StyledStrs(tips.collect())))
        }
        _ => None,
    };
    error.context().filter_map(shown).collect()
}

/// The tip for an input without its flag: `loopctl run loop.json ticket_id=TK-1`.
fn tip(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument || error.get(ContextKind::SuggestedArg).is_some() {
        return None;
    }
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(field)) if field.contains('=') && !field.starts_with(['-', '=']) => {
            Some(format!("an input is written '--input {field}'"))
        }
        _ => None,
    }
}

/// A panic is an internal error: reports its place, and nothing of what was in memory.
fn report_panic(place: Option<&panic::Location<'_>>) {
    let place = place.map_or_else(String::new, |place| format!(" at {}:{}", place.file(), place.line()));
    let text = format!(
        "error: internal error{place}; please report this line. Finished steps are in the store: \
         `loopctl runs` lists the runs\n"
    );
    log::announce_error(&Surface::of_process(), &text);
}

#[cfg(test)]
mod tests;
