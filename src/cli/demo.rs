//! `loopctl demo`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::Exit;
use super::failure::CommandError;
use super::input::InputArgs;
use super::new_files::{self, NewFile};
use super::next_commands::{program, quoted, quoted_path};
use super::output::Output;
use super::run::RunCommand;
use super::run_document::{ScriptArgs, WhatArgs};
use super::surface::Surface;
use super::watch::WatchArgs;
use crate::trace::Tone;

/// Play an example: an agent that triages a support ticket
///
/// The example is in the program: it needs no key, no network and no files. A script plays the model; its tools
/// send SQL to a database that is made for each run. Run and database are in a new temporary folder.
/// Exit codes: as for `run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl demo                        # the agent finds the cause, and answers
  loopctl demo TK-1044                # it wants to refund a charge, and waits for your approval
  loopctl demo TK-1039                # it asks who takes the ticket
  loopctl demo --write triage         # write the files of the example into a new folder")]
pub struct DemoCommand {
    /// The ticket: the script has replies for TK-1042, TK-1044 and TK-1039
    #[arg(value_name = "TICKET", default_value = FIRST)]
    pub ticket: String,
    /// Write the files of the example into a folder, and run nothing
    #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "deltas", "interactive", "on_pause"])]
    pub write: Option<PathBuf>,
    #[command(flatten)]
    pub watch: WatchArgs,
}

/// A ticket, and what comes of it.
struct DemoTicket {
    id: &'static str,
    about: &'static str,
}

const FIRST: &str = "TK-1042";
/// The tickets that the script has replies for.
const TICKETS: [DemoTicket; 3] = [
    DemoTicket { id: FIRST, about: "a double charge: the agent answers" },
    DemoTicket { id: "TK-1044", about: "a refund that waits for your approval" },
    DemoTicket { id: "TK-1039", about: "a question for you" },
];

macro_rules! example {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_str!(concat!("../../examples/support-triage/", $path)))),*]
    };
}

/// The files of the example: paths and texts.
const FILES: [(&str, &str); 10] = example![
    "loop.json",
    "loopctl.json",
    "script.json",
    "loop.test.json",
    "actions/list_charges.json",
    "actions/lookup_customer.json",
    "actions/lookup_ticket.json",
    "actions/refund_charge.json",
    "actions/write_recommendation.json",
    "data/support.sql",
];

/// The files of the example.
fn files() -> Vec<NewFile> {
    FILES.iter().map(|(path, text)| NewFile::new(*path, *text)).collect()
}

impl DemoCommand {
    /// Plays the example, or writes its files.
    ///
    /// # Errors
    /// When there was no run, or the files can't be written.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        match self.write {
            Some(folder) => leave(surface, &folder, &self.ticket),
            None => play(surface, self.ticket, self.watch).await,
        }
    }
}

/// Writes the files for good.
fn leave(surface: &Surface, folder: &Path, ticket: &str) -> Result<Exit, CommandError> {
    let mut files = files();
    files.push(NewFile::unless_there(".gitignore", ".loopctl/\n"));
    let done = new_files::write(folder, &files)?;
    let mut text = format!("wrote {} files into {}\n", done.written.len(), shown(&folder.display().to_string()));
    let look = &surface.err;
    let place = quoted_path(folder);
    let program = quoted(&program());
    for (what, command) in [
        ("go there", format!("cd {place}")),
        ("run", format!("{program} run loop.json --input {}", quoted(&format!("ticket_id={ticket}")))),
        ("test", format!("{program} test")),
        ("real model", format!("{program} run loop.json --input ticket_id=TK-1043 --model gpt-4o-mini")),
    ] {
        text.push_str(&format!("  {}  {}\n", look.paint(Tone::Dim, &format!("{what:<10}")), shown(&command)));
    }
    surface.say(&text);
    Ok(Exit::Completed)
}

/// Plays the example in a folder of its own, which stays: the run can be shown and answered there.
async fn play(surface: &Surface, ticket: String, watch: WatchArgs) -> Result<Exit, CommandError> {
    let or_else = ", or write the example into a folder: loopctl demo --write DIR";
    let folder = new_files::temporary_folder("loopctl-demo-", or_else)?;
    // Its commands name the folder, wherever they are called.
    let real = folder.path().canonicalize().unwrap_or_else(|_| folder.path().to_owned());
    new_files::write(&real, &files())?;
    let is_for_people = watch.output == Output::Human;
    if is_for_people {
        surface.say(&surface.line(
            Tone::Accent,
            "demo",
            &format!(
                "an agent triages support ticket {ticket}. A script plays the model; the SQL is real, in {}",
                real.display()
            ),
        ));
    }
    let run = RunCommand {
        what: WhatArgs {
            file: Some(real.join("loop.json")),
            input: InputArgs { fields: vec![format!("ticket_id={ticket}")], input_file: None },
            model: None,
            files: ScriptArgs { script: None, actions: Vec::new() },
            previous_run: None,
        },
        // Named in full, so that the printed commands work in every folder.
        store: real.join(".loopctl/runs.db").to_str().map(|file| format!("sqlite:{file}")),
        session: None,
        run_id: None,
        watch,
        timeout_ms: None,
    };
    // Without a run, nothing is left.
    let exit = Box::pin(run.perform(surface)).await?;
    let _ = folder.keep();
    if is_for_people {
        surface.say(&more(surface, &ticket));
    }
    Ok(exit)
}

/// What else the example shows.
fn more(surface: &Surface, played: &str) -> String {
    let program = quoted(&program());
    let mut ways: Vec<(String, &str)> = TICKETS
        .iter()
        .filter(|ticket| ticket.id != played)
        .map(|ticket| (format!("{program} demo {}", ticket.id), ticket.about))
        .collect();
    ways.push((format!("{program} demo --write triage"), "the files, to change them"));
    ways.push((format!("{program} init"), "a loop of your own"));
    let width = ways.iter().map(|(command, _)| command.len()).max().unwrap_or_default();
    let mut text = "\nMore:\n".to_owned();
    for (command, about) in ways {
        let about = surface.err.paint(Tone::Dim, about);
        text.push_str(&format!("  {:<width$}  {about}\n", shown(&command)));
    }
    text
}

fn shown(text: &str) -> String {
    crate::trace::escape::line(text).into_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_file_of_the_example_is_in_the_program() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/support-triage");
        let mut found = BTreeSet::new();
        for below in ["", "actions", "data"] {
            for entry in std::fs::read_dir(folder.join(below)).unwrap() {
                let path = entry.unwrap().path();
                // Its links lead to the other documentation.
                if path.is_file() && path.extension().is_some_and(|ending| ending != "md") {
                    found.insert(path.strip_prefix(&folder).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        assert_eq!(found, FILES.iter().map(|(path, _)| (*path).to_owned()).collect());
    }

    #[test]
    fn the_tickets_are_those_of_the_script() {
        let script: crate::language::Script = serde_json::from_str(FILES[2].1).unwrap();
        let cases: Vec<&str> = script.cases.iter().map(|case| case.when["ticket_id"].as_str().unwrap()).collect();
        assert_eq!(cases, TICKETS.map(|ticket| ticket.id));
    }
}
