//! `loopctl openapi pin`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;

use super::action_files::{self, digest};
use super::review::{SharedDigests, differences, gone, head, locked, moved, review, secrets};
use super::{OpenApiProject, allowed_hosts, read_page, shown};
use crate::cli::exit::Exit;
use crate::cli::failure::CommandError;
use crate::cli::new_files::{self, NewFile};
use crate::cli::surface::Surface;
use crate::compile::openapi::{MadeAction, MadeActions, PinSettings, actions_of, matches, operation_count, plain_name};
use crate::language::openapi::{LockedPage, OpenApiLock};
use crate::policy::host::{WrittenHost, is_private};
use crate::project;
use crate::trace::{Tone, escape};

/// Write actions for the operations of a page into actions/NAME.json
///
/// Each operation becomes an action of kind `http`; one that no action can make calls of is left out, and named with the reason.
/// A page that was pinned before keeps its patterns, host, prefix and token until others are named.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl openapi pin petstore.json
  loopctl openapi pin github.json --operations 'issues/*' 'GET /repos/*' --bearer github_token
  loopctl openapi pin petstore.json --host api.example.com --allow
  loopctl openapi pin petstore.json --verify
  loopctl openapi pin --verify                      # all pages that are pinned")]
pub struct OpenApiPinTask {
    /// The page: a file of OpenAPI 3.0 or 3.1
    #[arg(value_name = "SPEC", required_unless_present = "verify")]
    pub spec: Option<PathBuf>,
    /// The operations, by id, action or `METHOD PATH`; `*` is any text. Default: all
    #[arg(long, value_name = "PATTERN", num_args = 1..)]
    pub operations: Vec<String>,
    /// The host that requests are sent to, or a whole address, in place of the page's server
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// The name of the page: that of its files. Default: by the name of the file
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// What the names of the actions begin with
    #[arg(long, value_name = "TEXT")]
    pub prefix: Option<String>,
    /// The secret that is sent as a token for operations whose security the page does not describe
    #[arg(long, value_name = "KEY")]
    pub bearer: Option<String>,
    /// A secret of the project that the page's servers may be sent, although another page or action has it too; repeatable
    #[arg(long, value_name = "KEY")]
    pub secret: Vec<String>,
    /// An action that may become another operation of the page, because the one that had its name is gone; `*` is any text; repeatable
    #[arg(long, value_name = "NAME")]
    pub moved: Vec<String>,
    /// Add the host to `allow.hosts` of loopctl.json
    #[arg(long)]
    pub allow: bool,
    /// Write nothing, and compare the page with what was pinned; exit code 1 when it has changed
    #[arg(long, conflicts_with_all = ["allow", "operations", "host", "prefix", "bearer", "secret", "moved"])]
    pub verify: bool,
    /// The folder of the project: loopctl.json is there, or above it
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub folder: PathBuf,
}

/// From this number of operations on, it is said that reading them takes its time.
const MANY_OPERATIONS: usize = 300;

/// A page, its actions, and what the lock file says of it.
struct PinnedPage {
    made: MadeActions,
    texts: BTreeMap<String, String>,
    locked: LockedPage,
}

impl OpenApiPinTask {
    /// Reads the page, and writes its actions, or compares them.
    ///
    /// # Errors
    /// When the project or the page can't be read, or a file can't be written.
    pub fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let project = OpenApiProject::read(&self.folder)?;
        if self.verify {
            return self.compare(&project, surface);
        }
        let Some(spec) = &self.spec else { return Err(CommandError::usage("no page is named")) };
        let name = self.page_name(spec)?;
        let before = project.lock.pages.get(&name);
        let mut page = read(&project, spec, &name, &self.settings(&name, before)?, surface)?;
        page.locked.gone = before.map(|before| gone(before, &page.locked)).unwrap_or_default();
        if page.made.actions.is_empty() {
            surface.say(&review(&name, &page.made, &page.locked, before));
            if page.made.left_out.is_empty() && page.made.unnamed == 0 {
                return Err(CommandError::usage_help(
                    "the page describes no operation: nothing was written",
                    "an operation is a method of a path under `paths`: pin a page that has some",
                ));
            }
            let help = "`--operations` names some of them: by id, or as 'GET /path*'";
            return Err(CommandError::usage_help(
                "no operation of the page makes an action: nothing was written",
                help,
            ));
        }
        self.judge_secrets(&project, &page, before)?;
        judge_names(&project, &name, &page)?;
        self.judge_places(&page, before)?;
        let none = BTreeMap::new();
        let files = action_files::plan(&project, before.map_or(&none, |before| &before.files), &page.texts)?;
        surface.say(&review(&name, &page.made, &page.locked, before));
        let is_up_to_date = files.is_empty() && before == Some(&page.locked);
        for path in files.write(&project.folder)? {
            surface.say(&format!("{} is written\n", shown(&project.folder.join(path))));
        }
        write_lock(&project, &name, page.locked.clone())?;
        if is_up_to_date {
            surface.say("everything is up to date\n");
        }
        self.say_needs(&project, &page.made, surface)?;
        Ok(Exit::Completed)
    }

    /// The name of a page: as it is given, else by its file.
    fn page_name(&self, spec: &Path) -> Result<String, CommandError> {
        let is_name = |name: &String| {
            let is_sign = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
            name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.len() <= 40 && name.chars().all(is_sign)
        };
        let written = spec.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let name = self.name.clone().unwrap_or_else(|| plain_name(&written));
        if is_name(&name) {
            return Ok(name);
        }
        let message = format!("`{}` is no name for the files of a page", escape::line(&name));
        Err(CommandError::usage_help(message, "--name takes small letters, digits, `_` and `-`, at most 40"))
    }

    fn settings(&self, name: &str, before: Option<&LockedPage>) -> Result<PinSettings, CommandError> {
        let is_key = |text: &String| {
            !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        };
        let old = before.cloned().unwrap_or_default();
        let bearer = self.bearer.clone().or(old.bearer);
        if let Some(key) = bearer.as_ref().filter(|key| !is_key(key)) {
            return Err(CommandError::usage(format!("`{}` is no key of a secret", escape::line(key))));
        }
        let prefix = self.prefix.clone().unwrap_or(old.prefix);
        if !prefix.is_empty()
            && (!is_key(&prefix) || prefix.starts_with(|c: char| !c.is_ascii_alphabetic()) || prefix.len() > 24)
        {
            let message = format!("no name of an action may begin with `{}`", escape::line(&prefix));
            return Err(CommandError::usage_help(message, "a letter, then letters, digits, `_` and `-`, at most 24"));
        }
        let patterns = if self.operations.is_empty() { old.operations } else { self.operations.clone() };
        let host = self.host.clone().or(old.host);
        let known_names = match before.filter(|before| before.prefix == prefix) {
            Some(before) => before.actions.iter().map(|(name, was)| (was.place.clone(), name.clone())).collect(),
            None => BTreeMap::new(),
        };
        let (secret_prefix, known_keys) = (name.replace('-', "_"), old.schemes);
        Ok(PinSettings { patterns, host, secret_prefix, name_prefix: prefix, bearer, known_names, known_keys })
    }

    /// Compares pages with what was pinned.
    fn compare(&self, project: &OpenApiProject, surface: &Surface) -> Result<Exit, CommandError> {
        let named = self.spec.as_ref().map(|spec| self.page_name(spec)).transpose()?;
        let named = named.or_else(|| self.name.clone());
        if let Some(name) = named.as_ref().filter(|name| !project.lock.pages.contains_key(*name)) {
            let message = format!("the page `{}` is not pinned", escape::line(name));
            return Err(CommandError::usage_help(message, "`loopctl openapi pin SPEC` pins it"));
        }
        let pages = project.lock.pages.iter().filter(|(name, _)| named.as_ref().is_none_or(|named| named == *name));
        let mut is_same = true;
        for (name, pinned) in pages {
            let spec = self.spec.clone().unwrap_or_else(|| project.folder.join(&pinned.spec));
            let settings = self.settings(name, Some(pinned))?;
            match read(project, &spec, name, &settings, surface) {
                Ok(now) => {
                    let (mut lines, mut same) = differences(pinned, &now.locked);
                    for (path, known) in &pinned.files {
                        let text = super::text_of(&project.folder.join(path)).ok().flatten();
                        if text.is_none_or(|text| digest(&text) != *known) {
                            let _ = writeln!(lines, "  edited       {}", escape::exact_line(path));
                            same = false;
                        }
                    }
                    let is_notation = same && now.locked.files != pinned.files;
                    let verdict = match (same, is_notation) {
                        (false, _) => "changed since it was pinned",
                        (true, true) => "changed in notation only",
                        (true, false) => "as pinned",
                    };
                    surface.print(&format!("{}: {verdict}\n{lines}", head(name, &now.locked)))?;
                    is_same &= same;
                }
                Err(fault) => {
                    surface.say(&fault.shown(surface));
                    is_same = false;
                }
            }
        }
        Ok(if is_same { Exit::Completed } else { Exit::Failed })
    }

    /// Refuses a page that would be sent a secret that the project has for something else: the page itself chooses how its
    /// secrets are called.
    fn judge_secrets(
        &self,
        project: &OpenApiProject,
        page: &PinnedPage,
        before: Option<&LockedPage>,
    ) -> Result<(), CommandError> {
        for (key, servers) in &page.locked.secrets {
            let known = before.and_then(|before| before.secrets.get(key));
            let is_known = known.is_some_and(|known| servers.iter().all(|server| known.contains(server)));
            let is_named = self.secret.contains(key) || self.bearer.as_ref() == Some(key);
            if project.settings.orgconfig.contains_key(key) && !is_known && !is_named {
                let message = format!(
                    "nothing was written: the project's secret `{key}` would be sent to {}",
                    servers.join(", ")
                );
                return Err(CommandError::usage_help(
                    message,
                    format!("--secret {key} says that it may; or give the page another --name"),
                ));
            }
        }
        Ok(())
    }

    /// Refuses a page by which an action would become another operation: what declares it would call that one.
    fn judge_places(&self, page: &PinnedPage, before: Option<&LockedPage>) -> Result<(), CommandError> {
        let is_named = |name: &str| self.moved.iter().any(|pattern| matches(pattern, name));
        let mut others =
            before.into_iter().flat_map(|before| moved(before, &page.locked)).filter(|(name, ..)| !is_named(name));
        let Some((name, was, is)) = others.next() else { return Ok(()) };
        let [was, is] = [was, is].map(escape::exact_line);
        let more = match others.count() {
            0 => String::new(),
            count => format!(" ({count} more actions are moved, too)"),
        };
        let message = format!("nothing was written: `{name}` was {was}, which is gone, and would be {is}{more}");
        let help = format!("--moved {name} says that it may, and --moved '*' that all may; look at what declares them");
        Err(CommandError::usage_help(message, help))
    }

    /// Says what the project needs so that calls can be made.
    fn say_needs(&self, project: &OpenApiProject, made: &MadeActions, surface: &Surface) -> Result<(), CommandError> {
        let mut text = String::new();
        for (key, (holds, servers)) in secrets(made) {
            let servers: Vec<String> = servers.into_iter().collect();
            let _ = writeln!(text, "secret {key}: {}, sent to {}", escape::exact_line(&holds), servers.join(", "));
            if !project.settings.orgconfig.contains_key(&key) {
                let _ = writeln!(
                    text,
                    "  add to loopctl.json: \"orgconfig\": {{ \"{key}\": \"env:{}\" }}",
                    key.to_ascii_uppercase().replace('-', "_")
                );
            }
        }
        let servers: BTreeSet<String> = made.actions.values().map(|action| action.server.clone()).collect();
        let hosts = allowed_hosts::missing(project, &servers);
        if !hosts.is_empty() && self.allow {
            match allowed_hosts::added(project, &hosts) {
                Some(after) => {
                    project::replace(&project.file.path, &project.source.text, &after)
                        .map_err(|fault| CommandError::usage(fault.message.clone()))?;
                    let names: Vec<String> = hosts.into_iter().collect();
                    let _ = writeln!(text, "{}: `allow.hosts` has {} now", shown(&project.file.path), names.join(", "));
                }
                None => {
                    surface.say(&surface.line(Tone::Bad, "note", "`allow.hosts` of loopctl.json can't be added to"))
                }
            }
        } else if !hosts.is_empty() {
            let names: Vec<String> = hosts.iter().map(|host| format!("\"{host}\"")).collect();
            let _ = writeln!(text, "add to `allow.hosts` of loopctl.json (or --allow does): {}", names.join(", "));
        } else if let Some(host) = servers.iter().find_map(|server| private_host(project, server)) {
            let _ = writeln!(
                text,
                "add \"private_addresses\": true to `allow` of loopctl.json: `{host}` is a private or local host, and calls of it \
                 are refused"
            );
        } else if project.settings.allow.hosts.is_none() {
            text.push_str("loopctl.json has no `allow.hosts`: tools may reach every public host\n");
        }
        surface.say(&text);
        Ok(())
    }
}

/// The host of an address that the project's tools may not reach, because it is private.
fn private_host(project: &OpenApiProject, server: &str) -> Option<String> {
    let name = WrittenHost::of(server)?.name()?;
    (!project.settings.allow.private_addresses && is_private(&name)).then_some(name)
}

/// Refuses actions whose names another page's actions have.
fn judge_names(project: &OpenApiProject, name: &str, page: &PinnedPage) -> Result<(), CommandError> {
    for (other, pinned) in project.lock.pages.iter().filter(|(other, _)| *other != name) {
        if let Some(action) = page.made.actions.keys().find(|action| pinned.actions.contains_key(*action)) {
            let message =
                format!("nothing was written: `{action}` is an action of the page `{}`, too", escape::line(other));
            return Err(CommandError::usage_help(
                message,
                format!("--prefix {name}_ gives the actions of this page names of their own"),
            ));
        }
    }
    Ok(())
}

/// Reads a page, and makes its actions.
fn read(
    project: &OpenApiProject,
    spec: &Path,
    name: &str,
    settings: &PinSettings,
    surface: &Surface,
) -> Result<PinnedPage, CommandError> {
    let files = read_page::read(spec)?;
    let count = operation_count(&files);
    if count > MANY_OPERATIONS && settings.patterns.is_empty() {
        surface.say(&format!(
            "{}: reading {count} operations. Where their schemas name hundreds of others this takes minutes: `--operations` names those \
             that are needed\n",
            shown(spec)
        ));
    }
    let mut made =
        actions_of(&files, settings).map_err(|why| CommandError::usage(format!("{}: {why}", shown(spec))))?;
    let texts = action_files::texts(name, &mut made);
    let mut shared = SharedDigests::default();
    let mut of_action = |action: &MadeAction| locked(action, &mut shared);
    let secrets = secrets(&made);
    let is_sent = |(_, key): &(&String, &String)| secrets.contains_key(*key);
    let schemes = made.scheme_keys.iter().filter(is_sent).map(|(scheme, key)| (scheme.clone(), key.clone())).collect();
    let locked = LockedPage {
        spec: relative(&project.folder, spec),
        title: made.title.clone(),
        page_version: made.version.clone(),
        operations: settings.patterns.clone(),
        host: settings.host.clone(),
        prefix: settings.name_prefix.clone(),
        bearer: settings.bearer.clone(),
        secrets: secrets.into_iter().map(|(key, (_, servers))| (key, servers.into_iter().collect())).collect(),
        schemes,
        files: texts.iter().map(|(path, text)| (path.clone(), digest(text))).collect(),
        actions: made.actions.iter().map(|(name, action)| (name.clone(), of_action(action))).collect(),
        gone: BTreeMap::new(),
        left_out: made.left_out.clone(),
    };
    Ok(PinnedPage { made, texts, locked })
}

/// The path of a page from the project's folder: the lock file is read in other checkouts too. A page with which the folder shares
/// only the root of the disk is named by its whole path.
fn relative(folder: &Path, spec: &Path) -> String {
    let whole = |path: &Path| path.to_string_lossy().replace('\\', "/");
    let (Ok(real), Ok(folder)) = (spec.canonicalize(), folder.canonicalize()) else { return whole(spec) };
    for (up, above) in folder.ancestors().enumerate() {
        let inside = real.strip_prefix(above).ok().filter(|_| up == 0 || above.parent().is_some());
        if let Some(inside) = inside {
            return "../".repeat(up) + &whole(inside);
        }
    }
    whole(&real)
}

/// Writes the lock file, when it says something else.
fn write_lock(project: &OpenApiProject, name: &str, page: LockedPage) -> Result<(), CommandError> {
    let mut lock = project.lock.clone();
    lock.pages.insert(name.to_owned(), page);
    let text = serde_json::to_string_pretty(&lock).map_err(|error| CommandError::usage(error.to_string()))? + "\n";
    let text = text.split('\n').map(|line| escape::json(line).into_owned()).collect::<Vec<_>>().join("\n");
    let path = project.folder.join(OpenApiLock::FILE);
    match &project.lock_text {
        Some(before) if *before == text => Ok(()),
        Some(before) => {
            project::replace(&path, before, &text).map_err(|fault| CommandError::usage(fault.message.clone()))
        }
        None => new_files::write(&project.folder, &[NewFile::new(OpenApiLock::FILE, text)]).map(|_| ()),
    }
}
