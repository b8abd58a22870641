//! What helps against a fault, in the words of HTTP: a client sends members of a body.

use crate::diagnostic::Remedy;

/// A remedy in the words of HTTP.
pub fn words(remedy: &Remedy) -> String {
    match remedy {
        Remedy::GiveInput(name) => return format!("`\"input\": {{\"{name}\": ...}}` in the body"),
        Remedy::GiveInputByName => "write it as an object: `\"input\": {\"name\": ...}`",
        Remedy::NameModel => "name one in the document, or in the project of the server",
        Remedy::ChooseModel => ": the project of the server names one",
        Remedy::GiveScript => "the model does not answer",
        Remedy::GiveScriptAgain => "a server plays no script: resume it where it was started",
        Remedy::RunLoopWithActions => "send the loop, and serve this one in the folder `actions`",
        Remedy::RunLoopWithScript => "send the loop",
        Remedy::PlayScenarios => "send the loop: a server plays no scenarios",
        Remedy::WriteSnapshots => "a server writes none",
        Remedy::NameActions => "the server reads the actions of the folder that it serves",
        Remedy::MoveOrNameActions | Remedy::NameFile => "move it into a folder `actions`",
        Remedy::NameNeededActions => "leave those that are needed in the folder `actions`",
        Remedy::ChooseDocument => {
            "`\"new_document\": true` takes the new text, and `\"new_document\": false` the recorded one"
        }
        Remedy::LookAtNewDocument => {
            "send `{\"resume\": true, \"new_document\": true}`, look at it, then decide with its `hash`"
        }
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_remedy_names_a_flag_or_a_command() {
        for remedy in Remedy::all() {
            for text in [words(&remedy), remedy.to_string()] {
                assert!(!text.contains("--") && !text.contains("loopctl"), "{remedy:?}: {text}");
            }
        }
        assert_eq!(words(&Remedy::GiveInput("a".to_owned())), "`\"input\": {\"a\": ...}` in the body");
    }
}
