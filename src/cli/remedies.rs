//! What helps against a fault, in the words of the command line: flags, and other commands.

use crate::diagnostic::{Diagnostic, Remedy};

/// A remedy in the words of the command line.
pub fn words(remedy: &Remedy) -> String {
    match remedy {
        Remedy::GiveInput(name) => return format!("--input {name}=..."),
        Remedy::GiveInputByName => "give its names one by one, as in --input name=value",
        Remedy::NameModel => "--model names one for this run",
        Remedy::ChooseModel => " and choose it with --model",
        Remedy::GiveScript => "the model runs with `--script FILE` only",
        Remedy::GiveScriptAgain => "name it again, with --script FILE",
        Remedy::RunLoopWithActions => "name the loop, and this one with `--actions FILE`",
        Remedy::RunLoopWithScript => "name the loop, and this one with `--script FILE`",
        Remedy::PlayScenarios => "`loopctl test FILE` plays it",
        Remedy::WriteSnapshots => "`loopctl test --update` makes it, and replaces only a snapshot",
        Remedy::NameActions => "`--actions FILE` names another file",
        Remedy::MoveOrNameActions => "move it into a folder `actions`, or name it with `--actions`",
        Remedy::NameNeededActions => "give those that are needed with `--actions FILE`",
        Remedy::NameFile => "name it with `--actions FILE`",
        Remedy::ChooseDocument => {
            "--new-document continues with the new text, and --recorded-document with the recorded one"
        }
        Remedy::LookAtNewDocument => {
            "resume it with `--new-document` and no decision, then decide with `--if` and its hash"
        }
        Remedy::ContinueAfterFailureSteps => "--after-on-failure has it continue all the same",
    }
    .to_owned()
}

/// The help of a fault, if it has one.
pub fn help(fault: &Diagnostic) -> Option<String> {
    fault.help.as_ref().map(|help| help.said(words).into_owned())
}
