//! What a loop needs of its surroundings: the secrets of its tools and the keys of its models. What is missing is
//! reported all at once, before anything happens.

use std::collections::{BTreeMap, BTreeSet};

use super::fault::Fault;
use super::http_client::{IS_BUILT_IN, NOT_BUILT_IN};
pub use super::missing_requirement::{Missing, MissingRequirement, sentence};
use super::world::Engine;
use loopctl_lang::compile::question_tool;
use loopctl_lang::language::SecretSource;
use loopctl_lang::program::mcp::ToolOrigin;
use loopctl_lang::program::{Program, Tool, ToolKind};

impl Engine {
    /// What a loop, and the loops that it calls, need and can't be read here: each secret that one of their tools may
    /// send, and each model that they name. `model` is asked where a loop names none. Tools and models that a script
    /// replaces need nothing.
    pub fn missing(&self, program: &Program, model: Option<&str>) -> Vec<MissingRequirement> {
        self.world.vault.refresh();
        let mut needs = Needs::default();
        self.gather(program, model, &mut needs);
        let Needs { secrets, sources, models, tools, unbuilt, .. } = needs;
        let mut missing = Vec::new();
        let is_called = !self.world.toolbox.is_offline();
        for name in tools.into_iter().filter(|_| is_called) {
            let why = format!(
                "the tool `{name}` is one of a Rust program, and this program has none of the name: run the document in the \
                 program that has it"
            );
            missing.push(MissingRequirement::new(Missing::Tool { name }, why));
        }
        for name in unbuilt.into_iter().filter(|_| is_called) {
            let why = format!("the tool `{name}` asks a server, and {NOT_BUILT_IN}");
            missing.push(MissingRequirement::new(Missing::Tool { name }, why));
        }
        for name in models {
            if let Err(why) = self.world.models.get(Some(&name)) {
                missing.push(MissingRequirement::new(Missing::Model { name }, why));
            }
        }
        // What is not really called is sent no secret.
        let sent = !self.world.toolbox.is_offline();
        for (name, tools) in secrets.into_iter().filter(|_| sent) {
            if let Err(why) = self.world.vault.readable(&name) {
                let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
                let why = format!("{why}; {} needs it", tools.join(", "));
                missing.push(MissingRequirement::new(Missing::Secret { name }, why));
            }
        }
        for ((name, source), tool) in sources.into_iter().filter(|_| sent) {
            if let Err(why) = self.world.vault.read(&source) {
                let why = format!("{why}; {tool} needs it");
                missing.push(MissingRequirement::new(Missing::Datasource { name }, why));
            }
        }
        missing
    }

    /// What a loop needs of programs that print secrets, and of AWS, and that they do not give now. Who was not asked yet is
    /// asked, and waited for shortly.
    pub async fn not_given(&self, program: &Program) -> Vec<MissingRequirement> {
        let mut missing = Vec::new();
        for (requirement, source) in self.programs_of(program) {
            if let Err(why) = self.world.vault.probe(&source).await {
                missing.push(MissingRequirement { why, ..requirement });
            }
        }
        for name in self.named_models(program) {
            // One that can't be made is reported as missing.
            let Ok(model) = self.world.models.get(Some(&name)) else { continue };
            if let Err(why) = model.signs().await {
                missing.push(MissingRequirement::new(Missing::Model { name }, why));
            }
        }
        missing
    }

    /// The models that a loop asks.
    fn named_models(&self, program: &Program) -> BTreeSet<String> {
        let mut needs = Needs::default();
        self.gather(program, None, &mut needs);
        needs.models
    }

    /// What a loop needs of programs that print secrets, and their sources.
    fn programs_of(&self, program: &Program) -> Vec<(MissingRequirement, SecretSource)> {
        let mut needs = Needs::default();
        self.gather(program, None, &mut needs);
        let of_secrets = needs.secrets.into_keys().filter(|_| !self.world.toolbox.is_offline()).filter_map(|name| {
            let source = self.world.vault.source(&name).ok()?;
            Some((Missing::Secret { name }, source))
        });
        let of_models = needs.models.into_iter().flat_map(|name| {
            let model = self.world.models.get(Some(&name)).ok();
            let sources = model.map(|model| model.secret_programs()).unwrap_or_default();
            sources.into_iter().map(move |source| (Missing::Model { name: name.clone() }, source))
        });
        let of_programs = of_secrets.chain(of_models).filter(|(_, source)| source.command().is_some());
        of_programs.map(|(what, source)| (MissingRequirement::new(what, String::new()), source)).collect()
    }

    /// As [`Engine::missing`].
    ///
    /// # Errors
    /// When anything is missing: all of it, in one sentence.
    pub(super) fn has_all(&self, program: &Program, model: Option<&str>) -> Result<(), Fault> {
        let missing = self.missing(program, model);
        if missing.is_empty() { Ok(()) } else { Err(Fault::Missing(missing)) }
    }

    fn gather(&self, program: &Program, model: Option<&str>, needs: &mut Needs) {
        let own = program.model().or(program.project.model.as_deref());
        // The caller's choice comes first at the top; a called loop is asked for its own model first.
        let model = if needs.known.is_empty() { model.or(own) } else { own.or(model) };
        if !needs.known.insert((std::ptr::from_ref(program), model.map(str::to_owned))) {
            return;
        }
        // The steps of a workflow that ask models name their own, or have this one.
        let asks = program.needs_a_model();
        needs.models.extend(model.filter(|_| asks).map(str::to_owned));
        needs.models.extend(program.fallback_models().iter().map(|fallback| fallback.name().to_owned()));
        for called in program.step_loops() {
            self.gather(called, model, needs);
        }
        for to in program.asked_targets().into_iter().filter(|_| !self.world.toolbox.plays_posts()) {
            // `check` reports a target that the project does not have.
            let tool = program.project.notify.get(to).and_then(|target| question_tool(to, target));
            for key in tool.iter().flat_map(Tool::secrets) {
                needs.secrets.entry(key).or_default().insert(format!("the question to {to}"));
            }
        }
        for tool in program.all_tools().into_iter().filter(|tool| !self.world.toolbox.is_scripted(tool)) {
            if matches!(tool.kind, ToolKind::Embedded(ToolOrigin::Program))
                && !self.world.toolbox.has_embedded(&tool.name)
            {
                needs.tools.insert(tool.name.clone());
            }
            if matches!(tool.kind, ToolKind::Http(_)) && !IS_BUILT_IN {
                needs.unbuilt.insert(tool.name.clone());
            }
            let datasource = tool.datasource().and_then(|name| program.project.datasources.get(name));
            let held =
                datasource.into_iter().flat_map(|datasource| [Some(&datasource.url), datasource.password.as_ref()]);
            let held: Vec<&str> = held.flatten().map(String::as_str).collect();
            let keys = held.iter().filter_map(|source| source.strip_prefix("orgconfig:"));
            let server = tool.served().and_then(|served| program.project.mcp.get(&served.server));
            let of_server = server.map(loopctl_lang::program::mcp::secrets).unwrap_or_default();
            for key in tool.secrets().into_iter().chain(keys.map(str::to_owned)).chain(of_server) {
                needs.secrets.entry(key).or_default().insert(tool.name.clone());
            }
            let sources = held.iter().filter(|source| source.starts_with("env:") || source.starts_with("file:"));
            for source in sources {
                let name = tool.datasource().unwrap_or_default().to_owned();
                needs.sources.insert((name, (*source).to_owned()), tool.name.clone());
            }
            needs.models.extend(tool.model().map(str::to_owned));
            if let ToolKind::Loop(called) | ToolKind::Launch(called) = &tool.kind {
                self.gather(called, model, needs);
            }
        }
    }
}

/// What was found of the needs of a loop and the loops that it calls.
#[derive(Default)]
struct Needs {
    /// The loops that were looked at, each with the model that is asked where it names none.
    known: BTreeSet<(*const Program, Option<String>)>,
    /// The keys of secrets, each with the tools that use it.
    secrets: BTreeMap<String, BTreeSet<String>>,
    /// The variables and files that hold an address or a password of a datasource, each with a tool that uses it.
    sources: BTreeMap<(String, String), String>,
    models: BTreeSet<String>,
    /// The tools of a Rust program that this one does not have.
    tools: BTreeSet<String>,
    /// The tools that the program was built without.
    unbuilt: BTreeSet<String>,
}
