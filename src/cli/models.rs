//! `loopctl models`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::exit::Exit;
use super::failure::CommandError;
use super::output::{ListOutput, json_line};
use super::store::find_project;
use super::surface::Surface;
use super::table_column::{TableColumn, rows};
use crate::diagnostic::{Diagnostic, Severity};
use crate::drive::fault::Fault;
use crate::language::Project;
use crate::language::project::{Model, Price};
use crate::syntax::document::{self, DocumentKind};
use crate::syntax::{self, Tree};
use crate::trace::units::count;
use crate::trace::{Look, Tone, escape};

/// List the models of a project: provider, window, prices with their place, and what each lacks
///
/// Prices and windows are those of the project file, and no other: loopctl has no table of prices, because a price that is out of
/// date is worse than none. A model without a price costs what nobody knows: budgets in US dollars and `loopctl estimate` can't
/// count it. One without `context_tokens` has a window that is learned when its server refuses a request.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl models
  loopctl models --output json | jq -r '.[] | select(.price == null) | .name'")]
pub struct ModelsCommand {
    /// A folder of the project. Default: this one
    #[arg(default_value = ".")]
    pub folder: PathBuf,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub output: ListOutput,
}

/// A model of a project.
#[derive(Debug, Serialize)]
struct ListedModel {
    /// The name that loops call it by.
    name: String,
    /// Whether loops that name no model ask it.
    is_default: bool,
    /// The protocol of its server.
    provider: &'static str,
    /// The provider's id of it.
    model: String,
    /// Its window in tokens.
    context_tokens: Option<u64>,
    /// What a million tokens cost, in US dollars.
    price: Option<Price>,
    /// Where the price is written, as `FILE:LINE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    price_at: Option<String>,
    /// The fields that it should have, and has not.
    lacks: Vec<&'static str>,
}

impl ModelsCommand {
    /// Lists the models.
    ///
    /// # Errors
    /// When there is no project file, it can't be read, or `check` has errors of it.
    pub fn perform(&self, surface: &Surface) -> Result<Exit, CommandError> {
        // A project above a folder that is not there is none of it.
        if !self.folder.is_dir() {
            return Err(CommandError::usage_help(
                format!("there is no folder {}", self.folder.display()),
                "name a folder of the project",
            ));
        }
        let Some((_, source, project)) = find_project(&self.folder)? else {
            return Err(CommandError::usage_help(
                format!("no project file {} in {} or above", Project::FILE, self.folder.display()),
                "`loopctl init` makes a project",
            ));
        };
        let document = document::read_as(&source, Some(DocumentKind::Project));
        let errors: Vec<Diagnostic> =
            document.faults.iter().filter(|fault| fault.severity == Severity::Error).cloned().collect();
        if !errors.is_empty() {
            return Err(CommandError::Fault { fault: Fault::Diagnostics(errors), sources: vec![source], resume: None });
        }
        let listed = listed(&document.tree, &project);
        match self.output {
            ListOutput::Json => surface.print(&json_line(&listed)?)?,
            ListOutput::Human if listed.is_empty() => {
                surface.say(&format!("{} declares no models\n", escape::line(&source.name)));
            }
            ListOutput::Human => surface.print(&table(&surface.out, &listed))?,
        }
        if let Some(default) = project.model.as_ref().filter(|name| !project.models.contains_key(*name)) {
            let words = format!(
                "the default model {default:?} is none of `models`: it has no price, and its window is learned when its server refuses \
                 a request"
            );
            surface.say(&surface.line(Tone::Warn, "warning", &words));
        }
        Ok(Exit::Completed)
    }
}

fn listed(tree: &Tree, project: &Project) -> Vec<ListedModel> {
    let of = |name: &String, model: &Model| {
        let lacks = [("price", model.price.is_none()), ("context_tokens", model.context_tokens.is_none())];
        ListedModel {
            is_default: project.model.as_ref() == Some(name),
            provider: model.provider.facts().name,
            model: model.model.clone().unwrap_or_else(|| name.clone()),
            context_tokens: model.context_tokens,
            price: model.price,
            price_at: model.price.and_then(|_| price_at(tree, name)),
            lacks: lacks.into_iter().filter(|(_, lacks)| *lacks).map(|(field, _)| field).collect(),
            name: name.clone(),
        }
    };
    project.models.iter().map(|(name, model)| of(name, model)).collect()
}

fn price_at(tree: &Tree, name: &str) -> Option<String> {
    let pointer = format!("/models/{}/price", syntax::token(name));
    tree.at(&pointer)?;
    let place = tree.place(&pointer);
    Some(format!("{}:{}", Project::FILE, place.line))
}

/// The models for people. Prices are for a million tokens.
fn table(look: &Look, models: &[ListedModel]) -> String {
    let cells = |cell: &dyn Fn(&ListedModel) -> String| models.iter().map(cell).collect::<Vec<_>>();
    let usd = |part: fn(&Price) -> Option<f64>| {
        cells(&|model| model.price.as_ref().and_then(part).map_or_else(String::new, |usd| format!("${usd}")))
    };
    let name = |model: &ListedModel| {
        let mark = if model.is_default { " (default)" } else { "" };
        format!("{}{mark}", escape::line(&model.name))
    };
    let columns = vec![
        TableColumn::new("MODEL", cells(&name)),
        TableColumn::new("PROVIDER", cells(&|model| model.provider.to_owned())),
        TableColumn::new("ID", cells(&|model| escape::line(&model.model).into_owned())),
        TableColumn::number("WINDOW", cells(&|model| model.context_tokens.map_or_else(String::new, count))),
        TableColumn::number("INPUT", usd(|price| Some(price.input))),
        TableColumn::number("CACHED", usd(|price| price.cached_input)),
        TableColumn::number("CACHE WRITE", usd(|price| price.cache_write)),
        TableColumn::number("OUTPUT", usd(|price| Some(price.output))),
        TableColumn::new(
            "PRICE AT",
            cells(&|model| model.price_at.as_deref().map_or_else(String::new, |at| escape::line(at).into_owned())),
        )
        .dim(),
        TableColumn::new("LACKS", cells(&|model| model.lacks.join(", "))),
    ];
    rows(look, columns)
}
