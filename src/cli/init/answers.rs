//! What the flags of `init` say, and what they leave open.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use super::names::{judge_model, judge_noun};
use super::new_project::RealModel;
use super::templates::{self, ProjectTemplate};
use crate::cli::failure::CommandError;
use crate::cli::surface::Surface;
use crate::language::project::Provider;
use crate::trace::layout::TextBlock;
use crate::trace::{Tone, escape};

/// The model where none is named.
const MODEL: &str = "gpt-4o-mini";
/// How often a question is asked again after an answer that is none.
const MAX_ASKED: usize = 5;

/// What a project begins with.
#[derive(Clone)]
pub(super) enum ProjectOrigin {
    /// A template.
    Template(&'static ProjectTemplate),
    /// A document of the user.
    Document(PathBuf),
}

/// What is known of a new project.
pub(super) struct Answers {
    origin: Option<ProjectOrigin>,
    noun: Option<String>,
    model: Option<String>,
}

impl Answers {
    /// The answers of the flags.
    ///
    /// # Errors
    /// When one of them is no name.
    pub(super) fn new(
        origin: Option<ProjectOrigin>,
        noun: Option<String>,
        model: Option<String>,
    ) -> Result<Self, CommandError> {
        if let (Some(ProjectOrigin::Document(_)), Some(_)) = (&origin, &noun) {
            return Err(CommandError::usage_help(
                "--looks-up is for a new loop, and --from hyphen names one that exists",
                "leave one of them out",
            ));
        }
        let refused = |[message, help]: [String; 2]| CommandError::usage_help(message, help);
        noun.as_deref().map_or(Ok(()), judge_noun).map_err(refused)?;
        model.as_deref().map_or(Ok(()), judge_model).map_err(refused)?;
        Ok(Self { origin, noun, model })
    }

    /// Whether somebody can be asked.
    pub(super) fn may_ask(surface: &Surface) -> bool {
        std::io::stdin().is_terminal() && surface.err_terminal
    }

    /// Asks what is open.
    ///
    /// # Errors
    /// When the input ends.
    pub(super) fn ask(&mut self, surface: &Surface) -> Result<(), CommandError> {
        let questioner = Questioner { surface };
        if self.origin.is_none() {
            let kinds: Vec<String> =
                templates::ALL.iter().map(|template| format!("{}: {}", template.name, template.about)).collect();
            let is_kind = |answer: &str| match templates::named(answer) {
                Some(_) => Ok(()),
                None => {
                    let names: Vec<&str> = templates::ALL.iter().map(|template| template.name).collect();
                    let (last, before) = names.split_last().unwrap_or((&"", &[]));
                    let help = format!("write {} or {last}", before.join(", "));
                    Err([format!("{answer:?} is none of them"), help])
                }
            };
            let kind = questioner.answer("What do you begin with?", &kinds, templates::FIRST.name, &is_kind)?;
            self.origin = templates::named(&kind).map(ProjectOrigin::Template);
        }
        if let (None, Some(ProjectOrigin::Template(template))) = (&self.noun, &self.origin) {
            self.noun = Some(questioner.answer("What does it look up? One word.", &[], template.noun, &judge_noun)?);
        }
        if self.model.is_none() {
            let about = ["A script plays it until you say otherwise.".to_owned()];
            self.model = Some(questioner.answer("Which model?", &about, MODEL, &judge_model)?);
        }
        Ok(())
    }

    /// What it begins with.
    pub(super) fn origin(&self) -> ProjectOrigin {
        self.origin.clone().unwrap_or(ProjectOrigin::Template(templates::FIRST))
    }

    /// What is looked up.
    pub(super) fn noun(&self, template: &ProjectTemplate) -> String {
        self.noun.clone().unwrap_or_else(|| template.noun.to_owned())
    }

    /// The model of the real runs.
    pub(super) fn model(&self) -> RealModel {
        let id = self.model.clone().unwrap_or_else(|| MODEL.to_owned());
        let provider = Provider::of_model(&id).unwrap_or(Provider::DEFAULT);
        RealModel { id, provider }
    }
}

/// Asks one human.
struct Questioner<'a> {
    surface: &'a Surface,
}

impl Questioner<'_> {
    fn answer(
        &self,
        question: &str,
        about: &[String],
        default: &str,
        judge: &dyn Fn(&str) -> Result<(), [String; 2]>,
    ) -> Result<String, CommandError> {
        let look = &self.surface.err;
        let mut text = format!("{}\n", look.paint(Tone::Bold, question));
        for line in about {
            text.push_str(&look.paint(Tone::Dim, &format!("  {line}")));
            text.push('\n');
        }
        self.surface.say(&text);
        for _ in 0..MAX_ASKED {
            self.surface.say(&format!("[{default}] > "));
            let mut line = String::new();
            if std::io::stdin().read_line(&mut line).unwrap_or_default() == 0 {
                self.surface.say("\n");
                break;
            }
            let answer = if line.trim().is_empty() { default } else { line.trim() };
            match judge(answer) {
                Ok(()) => return Ok(answer.to_owned()),
                Err([message, help]) => {
                    let block = TextBlock { lead: ("again: ", 7), tone: Some(Tone::Warn), tail: "", lines: 10 };
                    self.surface.say(&look.block(&escape::line(&format!("{message}; {help}")), &block));
                }
            }
        }
        Err(CommandError::usage_help(
            "nothing was written: the questions have no answers",
            "give them as flags: loopctl init --help",
        ))
    }
}
