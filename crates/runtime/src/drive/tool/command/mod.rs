//! `command` actions: a program with its arguments, never a shell.

#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(not(target_os = "linux"))]
#[path = "cgroup_off.rs"]
mod cgroup;
#[cfg(target_os = "linux")]
mod group_entry;
mod leftover_processes;
mod process;
mod secret_program;
mod server_process;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_prepared;
mod user_program;

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

#[cfg(not(target_os = "linux"))]
pub use self::cgroup::enter_group;
#[cfg(target_os = "linux")]
pub use self::group_entry::enter_group;
pub use self::secret_program::AllowedPrograms;
pub(super) use self::server_process::{ServerProcess, ServerProgram, ServerStreams};
pub use self::user_program::NamedProgram;
use super::output::fault;
use super::runner::{RawFault, RawOutcome, ToolRunner, wrong_kind};
use crate::drive::future::BoxFuture;
use crate::drive::run_meter::TraceContext;
use crate::drive::secret::Vault;
use crate::drive::tool::call::ToolCall;
use loopctl_engine::event::ToolFault;
use loopctl_lang::compile::tool::is_value;
use loopctl_lang::language::Project;
use loopctl_lang::language::project::Allow;
use loopctl_lang::policy::variables::{self, Refusal};
use loopctl_lang::program::reference::{Scope, Unresolved};
use loopctl_lang::program::template::Template;
use loopctl_lang::program::{CommandTool, Tool, ToolKind};

/// The folders in which a program without a slash is searched, and the program's `PATH`.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Makes the calls of `command` actions.
pub(super) struct CommandRunner {
    project: Arc<Project>,
    root: PathBuf,
    vault: Arc<Vault>,
}

impl CommandRunner {
    pub(super) fn new(project: &Arc<Project>, root: &Path, vault: &Arc<Vault>) -> Self {
        Self { project: Arc::clone(project), root: root.to_owned(), vault: Arc::clone(vault) }
    }

    async fn make(&self, tool: &CommandTool, call: &ToolCall<'_>) -> Result<Value, RawFault> {
        let mut prepared = prepare(tool, &self.project.allow, &self.root, &call.scope(&self.vault))?;
        if let Some(trace) = &call.trace {
            prepared.join_trace(trace);
        }
        process::run(&prepared, call.at.is_some()).await
    }
}

impl ToolRunner for CommandRunner {
    fn call<'a>(&'a self, tool: &'a Tool, call: &'a ToolCall<'a>) -> BoxFuture<'a, RawOutcome> {
        match &tool.kind {
            ToolKind::Command(command) => Box::pin(async move { self.make(command, call).await.into() }),
            _ => wrong_kind(tool),
        }
    }
}

/// A program, ready to be started.
#[derive(Debug)]
struct Prepared {
    program: PathBuf,
    args: Vec<String>,
    /// Its environment, whole.
    env: Vec<(String, String)>,
    stdin: Option<Vec<u8>>,
    cwd: PathBuf,
}

impl Prepared {
    /// Adds its place in the trace, unless the document declares one.
    fn join_trace(&mut self, trace: &TraceContext) {
        let names = ["TRACEPARENT", "TRACESTATE"];
        if self.env.iter().any(|(name, _)| names.contains(&name.as_str())) {
            return;
        }
        let values = [Some(&trace.parent), trace.state.as_ref()];
        let pairs = names.into_iter().zip(values).filter_map(|(name, value)| Some((name.to_owned(), value?.clone())));
        self.env.extend(pairs);
    }
}

/// The program of an action, with all arguments and variables.
///
/// # Errors
/// When the program is not allowed or not there, or an argument or a variable is refused.
fn prepare(tool: &CommandTool, allow: &Allow, root: &Path, scope: &Scope<'_>) -> Result<Prepared, ToolFault> {
    let action = &tool.action;
    let program = locate(&action.program, &allow.commands, root)?;
    // Every user of the machine can see arguments: they contain no secrets.
    let open = Scope { secrets: None, json: scope.json.beside(), ..*scope };
    let mut args = Vec::with_capacity(tool.args.len());
    for template in &tool.args {
        let text = template.render(&open).map_err(missing)?;
        args.push(argument(template.source(), text, action.allow_leading_dash)?);
    }
    let mut env = fixed_variables();
    for (name, template) in &tool.env {
        permitted(name, template, &allow.env)?;
        let pair = variable(name, template.render(scope).map_err(missing)?)?;
        env.retain(|(name, _)| *name != pair.0);
        env.push(pair);
    }
    let stdin = tool.stdin.as_ref().map(|template| template.render(scope)).transpose().map_err(missing)?;
    let cwd = folder(root, action.cwd.as_deref())?;
    Ok(Prepared { program, args, env, stdin: stdin.map(String::into_bytes), cwd })
}

fn missing(missing: Unresolved) -> ToolFault {
    fault("a value is missing or can't be used", missing.why)
}

/// The file of a program that the project allows. A name with a slash is a path relative to the project's
/// folder; another name is searched in the fixed path.
fn locate(program: &str, allowed: &[String], root: &Path) -> Result<PathBuf, ToolFault> {
    if !allowed.iter().any(|entry| entry == program) {
        return Err(fault("program not allowed", format!("`{program}` is not in `allow.commands` of loopctl.json")));
    }
    if program.contains('/') {
        return Ok(root.join(program));
    }
    find_program(program).ok_or_else(|| fault("program not found", format!("`{program}` is in none of {PATH}")))
}

/// The file of a program in the fixed path.
fn find_program(name: &str) -> Option<PathBuf> {
    PATH.split(':').map(|folder| Path::new(folder).join(name)).find(|file| is_program(file))
}

/// The variables that every program gets.
fn fixed_variables() -> Vec<(String, String)> {
    vec![("PATH".to_owned(), PATH.to_owned()), ("LANG".to_owned(), "C.UTF-8".to_owned())]
}

#[cfg(unix)]
fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(file).is_ok_and(|kind| kind.is_file() && kind.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(file: &Path) -> bool {
    file.is_file()
}

/// One argument. A leading dash must be written by the author: a value with a leading dash could turn an
/// argument into an option.
fn argument(source: &str, text: String, allow_leading_dash: bool) -> Result<String, ToolFault> {
    if text.contains('\0') {
        return Err(fault("argument not allowed", "it has a zero byte"));
    }
    if text.starts_with('-') && !source.starts_with('-') && !allow_leading_dash {
        return Err(fault(
            "argument begins with `-`",
            format!("the argument `{source}` took a value that begins with `-`; `allow_leading_dash` would allow it"),
        ));
    }
    Ok(text)
}

/// Refuses a variable that a value fills, by the rule of `check`: [`variables::refusal`].
fn permitted(name: &str, template: &Template, allowed: &[String]) -> Result<(), ToolFault> {
    let filled = template.variables().iter().any(is_value);
    let why = match variables::refusal(name, filled, allowed) {
        None => return Ok(()),
        Some(Refusal::Steers) => format!("the value of `{name}` must be written out, without templates"),
        Some(Refusal::NotAllowed) => format!("no value may fill `{name}`: it is not in `allow.env` of loopctl.json"),
    };
    Err(fault("environment not allowed", why))
}

fn variable(name: &str, text: String) -> Result<(String, String), ToolFault> {
    if name.is_empty() || name.contains(['=', '\0']) || text.contains('\0') {
        let why = format!("`{}` is no name of a variable, or its value has a zero byte", name.escape_default());
        return Err(fault("environment not allowed", why));
    }
    Ok((name.to_owned(), text))
}

/// The working folder, inside of the project's folder.
fn folder(root: &Path, cwd: Option<&str>) -> Result<PathBuf, ToolFault> {
    let refuse = |why: String| fault("folder not allowed", why);
    let root = root.canonicalize().map_err(|error| refuse(format!("the project's folder: {error}")))?;
    let Some(cwd) = cwd else { return Ok(root) };
    if Path::new(cwd).components().any(|part| matches!(part, Component::Prefix(_))) {
        return Err(refuse(format!("`{cwd}`")));
    }
    let folder = root.join(cwd).canonicalize().map_err(|error| refuse(format!("`{cwd}`: {error}")))?;
    if folder.starts_with(&root) && folder.is_dir() {
        Ok(folder)
    } else {
        Err(refuse(format!("`{cwd}` is no folder inside of the project's")))
    }
}
