//! All files of a check, checked together: names are looked up across folders as for a run, and each fault is
//! reported once, however many loops have it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::Deserialize as _;

use crate::check::{ScriptedLoops, script_calls};
use crate::cli::check::{token_loops, unused_targets, webhook_clashes};
use crate::cli::estimate;
use crate::cli::found_documents::{ReadTarget, is_lock, read_all};
use crate::cli::report::Tally;
use crate::cli::worker_threads::each;
use crate::compile::embedded_tools::EmbeddedFile;
use crate::compile::{Declared, OutsideFiles, Texts, alone};
use crate::diagnostic::{Diagnostic, Place, Source, codes};
use crate::drive::clock;
use crate::drive::engine::Engine;
use crate::drive::requirements::Missing;
use crate::drive::tool::ConnectedDatabases;
use crate::journal::memory::MemoryJournal;
use crate::language::Project;
use crate::program::Program;
use crate::project::load;
use crate::project::{self, Library, Neighbours, Target, Targets};
use crate::syntax;
use crate::syntax::Tree;
use crate::syntax::document;
use crate::syntax::document::{Document, DocumentKind};

/// The files to check.
pub struct Survey {
    targets: Targets,
    actions: Vec<PathBuf>,
    /// Texts that replace the content of files, by their paths without links.
    texts: BTreeMap<PathBuf, Source>,
    stdin: OnceLock<Result<Source, Box<Diagnostic>>>,
    /// Whether what loops need of the environment is checked too.
    environment: bool,
    /// The databases of the projects that were asked, by folder and project file, if servers are asked.
    servers: Option<ServersByProject>,
    /// Whether what runs can use is estimated.
    estimates: bool,
}

/// The databases of projects, by folder and the text of the project file.
type ServersByProject = Mutex<BTreeMap<(PathBuf, String), Arc<ConnectedDatabases>>>;

/// What was found.
#[derive(Debug, Default)]
pub struct Findings {
    /// All faults, file by file, each file's in the order of its text.
    pub diagnostics: Vec<Diagnostic>,
    /// The texts that they point into.
    pub sources: Vec<Source>,
    /// How much was checked.
    pub tally: Tally,
    /// Whether a path could not be read.
    pub unreadable: bool,
    /// What runs can use at most, a line for each loop and workflow that has no errors.
    pub estimates: Vec<String>,
}

impl Survey {
    /// The given files, and those in the given folders.
    ///
    /// # Errors
    /// When there are too many files, or a file of `actions` can't be read.
    pub fn new(paths: &[PathBuf], actions: &[PathBuf]) -> Result<Self, Box<Diagnostic>> {
        let targets = project::targets(paths)?;
        for file in actions {
            // Errors in its text are reported with their places, as for any other file.
            if let Some(fault) = project::read(file).err().filter(|fault| fault.code == codes::FILE) {
                return Err(fault);
            }
        }
        Ok(Self {
            targets,
            actions: actions.to_vec(),
            texts: BTreeMap::new(),
            stdin: OnceLock::new(),
            environment: false,
            servers: None,
            estimates: false,
        })
    }

    /// Whether the secrets and keys that loops need are checked too.
    pub fn with_environment(&mut self, environment: bool) {
        self.environment = environment;
    }

    /// What a run of each loop and workflow can use is estimated too.
    pub fn with_estimates(&mut self) {
        self.estimates = true;
    }

    /// Queries are prepared at the servers of datasources too.
    pub fn with_servers(&mut self) {
        self.servers = Some(Mutex::default());
    }

    /// What is known outside of a project's documents, with what its servers say.
    fn with_connected(&self, outside: &Arc<OutsideFiles>, project: &Source, root: &Path) -> Arc<OutsideFiles> {
        let Some(servers) = &self.servers else { return Arc::clone(outside) };
        let document = document::read_as(project, Some(DocumentKind::Project));
        let Ok(settings) = Project::deserialize(&document.value) else { return Arc::clone(outside) };
        let connected = || Arc::new(ConnectedDatabases::new(settings, root, outside.databases.clone()));
        let mut servers = servers.lock().unwrap_or_else(PoisonError::into_inner);
        let connected =
            Arc::clone(servers.entry((root.to_owned(), project.text.to_string())).or_insert_with(connected));
        Arc::new(OutsideFiles { databases: Some(connected), ..OutsideFiles::clone(outside) })
    }

    /// The files whose text can be replaced: all but standard input.
    pub fn files(&self) -> impl Iterator<Item = (&Path, &Path)> {
        self.targets.files.iter().filter_map(|target| Some((target.path.as_path(), target.real.as_deref()?)))
    }

    /// Checks this text in place of a file's content; `None` restores the content.
    pub fn put(&mut self, real: &Path, text: Option<Source>) {
        match text {
            Some(text) => self.texts.insert(real.to_owned(), text),
            None => self.texts.remove(real),
        };
    }

    /// Checks all files.
    pub fn look(&self) -> Findings {
        let targets = &self.targets.files;
        let read = read_all(targets, |target| self.text(target));
        let mut library = Library::new(&self.actions);
        let mut declared = Declared::default();
        for (target, read) in targets.iter().zip(&read) {
            let (Some(real), ReadTarget::Document(document)) = (&target.real, read) else { continue };
            library.spell(real, &target.path);
            if is_looped(document) {
                declared.add(document);
            }
            library.keep(real, document.tree.source.clone());
        }
        let mut found = Findings::default();
        found.report_unreadable(&self.targets.faults);
        let mut order = FileOrder::default();
        let mut work: Vec<CheckJob<'_>> = Vec::new();
        for (target, read) in targets.iter().zip(read) {
            match read {
                ReadTarget::Skipped if is_lock(&target.path) => {}
                ReadTarget::Skipped => found.tally.skipped.push(project::name_of(&target.path)),
                ReadTarget::Fault(fault) => {
                    found.tally.files += 1;
                    order.add(&fault.place.file);
                    found.report_unreadable(&[*fault]);
                }
                ReadTarget::Document(document) => {
                    found.tally.files += 1;
                    order.add(&document.tree.source.name);
                    let needs = is_placed(&document) || may_be_tools(target, &document);
                    let neighbours = needs.then(|| library.neighbours(&project::folder_of(&target.path)));
                    work.push(CheckJob { target, document, neighbours });
                }
            }
        }
        let judged = each(work, |work| judge(work, &declared, self));
        let mut loops = ScriptedLoops::default();
        judged.iter().for_each(|judged| loops.add(&judged.loops));
        let looped = judged.iter().filter(|judged| judged.is_looped);
        // A loop that can't be compiled has a name that is not known.
        let names: Option<BTreeSet<String>> = looped.map(|judged| judged.name.clone()).collect();
        let targets: BTreeSet<String> = judged.iter().flat_map(|judged| judged.targets.iter().cloned()).collect();
        let hooked: Vec<Arc<Program>> = judged.iter().filter_map(|judged| judged.hooked.clone()).collect();
        found.report_clashes(&hooked);
        for JudgedFile { faults, sources, kept, estimate, .. } in judged {
            found.estimates.extend(estimate);
            found.diagnostics.extend(faults);
            found.sources.extend(sources);
            let Some(document) = kept else { continue };
            if document.kind == Some(DocumentKind::Script) {
                found.diagnostics.extend(script_calls(&document, &loops));
            } else if let Some(names) = &names {
                found.diagnostics.extend(token_loops::unknown(&document, names, &self.targets));
                found.diagnostics.extend(unused_targets::unused(&document, &targets, &self.targets));
            }
            found.sources.push(document.tree.source.clone());
        }
        found.leave_repeated_out();
        found.settle(order);
        found
    }

    fn text(&self, target: &Target) -> Result<Source, Box<Diagnostic>> {
        match target.real.as_ref().and_then(|real| self.texts.get(real)) {
            Some(text) => Ok(text.clone()),
            None if target.path == Path::new("-") => self.stdin.get_or_init(project::read_stdin).clone(),
            None => project::read(&target.path),
        }
    }
}

/// Whether a document is a loop, or may be run like one.
fn is_looped(document: &Document) -> bool {
    matches!(document.kind, Some(DocumentKind::Loop | DocumentKind::AgentRequest | DocumentKind::Workflow))
}

/// Whether a document is checked together with its project: actions are.
fn is_placed(document: &Document) -> bool {
    is_looped(document) || document.kind == Some(DocumentKind::Actions)
}

/// Whether a file may be the one that its project names as `embedded`: a list, and no document of ours.
fn may_be_tools(target: &Target, document: &Document) -> bool {
    target.named && matches!(document.kind, None | Some(DocumentKind::Actions))
}

/// A document to judge.
struct CheckJob<'a> {
    target: &'a Target,
    document: Box<Document>,
    /// The project and the neighbours of the document, if they matter.
    neighbours: Option<Arc<Neighbours>>,
}

/// What is known of a document that was judged.
struct JudgedFile {
    /// Its faults, and those of its parts.
    faults: Vec<Diagnostic>,
    /// The texts that they point into.
    sources: Vec<Source>,
    /// The loops that it is made of, as far as they can be compiled.
    loops: ScriptedLoops,
    /// Whether it is a loop, or may be run like one.
    is_looped: bool,
    /// The name of the loop, if it can be compiled.
    name: Option<String>,
    /// The targets of `notify` that it names.
    targets: BTreeSet<String>,
    /// The workflow, if it has a webhook and can be compiled.
    hooked: Option<Arc<Program>>,
    /// What a run of it can use at most, if that is asked for and nothing keeps it from running.
    estimate: Option<String>,
    /// The document, when it is a script or a project file: what these say of loops is judged when all are known.
    kept: Option<Box<Document>>,
}

impl JudgedFile {
    /// A file of which nothing else is known.
    fn unjudged(faults: Vec<Diagnostic>, source: Source, is_looped: bool) -> Self {
        Self {
            faults,
            sources: vec![source],
            loops: ScriptedLoops::default(),
            is_looped,
            name: None,
            targets: BTreeSet::new(),
            hooked: None,
            estimate: None,
            kept: None,
        }
    }
}

fn judge(work: CheckJob<'_>, declared: &Declared, survey: &Survey) -> JudgedFile {
    let CheckJob { target, document, neighbours } = work;
    let main = document.tree.source.clone();
    let targets = unused_targets::named(&document);
    let real = target.real.as_deref();
    if neighbours.as_ref().is_some_and(|neighbours| may_be_tools(target, &document) && neighbours.names_tools(real)) {
        let faults = EmbeddedFile::read(&main).faults;
        return JudgedFile::unjudged(faults, main, false);
    }
    let neighbours = neighbours.filter(|_| is_placed(&document));
    let mut root = None;
    let texts = match neighbours.map(|neighbours| neighbours.gathered(main.clone(), real)) {
        Some(Ok(gathered)) => {
            let mut texts = gathered.texts;
            if let Some(project) = texts.project.as_ref().filter(|_| survey.servers.is_some()) {
                texts.outside = survey.with_connected(&texts.outside, project, &gathered.root);
            }
            if texts.project.as_ref().is_some_and(has_end) || waits_until(&main) {
                texts.outside = dated(&texts.outside);
            }
            root = Some(gathered.root);
            texts
        }
        Some(Err(mut faults)) => {
            let is_looped = is_looped(&document);
            faults.extend(document.faults);
            return JudgedFile { targets, ..JudgedFile::unjudged(faults, main, is_looped) };
        }
        None if document.kind == Some(DocumentKind::Project) => {
            let folder = project::folder_of(&target.path);
            let outside = Arc::new(project::outside(&main, &folder));
            let outside = dated(&survey.with_connected(&outside, &main, &folder));
            Texts { outside, ..Texts::new(main) }
        }
        None => Texts::new(main),
    };
    let mut faults = alone(&document, declared);
    let examined = load::examine(&texts, *document);
    let looped = is_looped(&examined.document);
    if examined.document.kind == Some(DocumentKind::Scenario) {
        faults.extend(project::scenarios(&examined.document, &target.path, &[]).faults);
    }
    if let (true, Some(root), Some(program)) = (survey.environment, root, &examined.program) {
        faults.extend(missing(program, &root, &texts));
    }
    let loops = ScriptedLoops::of(&examined, !examined.has_errors());
    // A document that is no loop is a fault for `run`, but not here.
    faults.extend(examined.diagnostics.into_iter().filter(|fault| looped || fault.code != codes::NO_LOOP));
    let mentioned: HashSet<&str> = faults.iter().map(|fault| &*fault.place.file).collect();
    let sources = load::sources(&texts).into_iter().filter(|source| mentioned.contains(&*source.name)).collect();
    let is_sound = !faults.iter().any(Diagnostic::is_error);
    let loops = ScriptedLoops { is_sound, ..loops };
    let name = examined.program.as_ref().map(|program| program.name.clone());
    let hooked = webhook_clashes::webhook_of(examined.program.as_ref());
    let estimated = examined.program.as_ref().filter(|_| survey.estimates && is_sound);
    let estimate = estimated.map(|program| estimate::brief(program));
    let is_kept = matches!(examined.document.kind, Some(DocumentKind::Script | DocumentKind::Project));
    let kept = is_kept.then(|| Box::new(examined.document));
    JudgedFile { faults, sources, loops, is_looped: looped, name, targets, hooked, estimate, kept }
}

/// Whether a project file has something that ends at a moment.
fn has_end(project: &Source) -> bool {
    project.text.contains("expires_at")
}

/// Whether a document may wait until a moment.
fn waits_until(document: &Source) -> bool {
    document.text.contains("until")
}

/// What is known outside of a project's documents, now.
fn dated(outside: &OutsideFiles) -> Arc<OutsideFiles> {
    Arc::new(OutsideFiles { now_ms: Some(clock::wall_ms()), ..outside.clone() })
}

/// What a loop needs of the environment and can't be read, at its place in the project file.
fn missing(program: &Arc<Program>, root: &Path, texts: &Texts) -> Vec<Diagnostic> {
    let engine = Engine::builder(Arc::clone(&program.project), root).journal(Arc::new(MemoryJournal::new())).build();
    let project = texts.project.as_ref().map(|source| syntax::parse(source).0);
    let main = syntax::parse(&texts.main).0;
    let place = |pointer: &str| match project.as_ref().filter(|tree| tree.at(pointer).is_some()) {
        Some(tree) => tree.place(pointer),
        None => place_of_model(pointer, &main, project.as_ref()).unwrap_or_else(|| texts.main.whole()),
    };
    let webhook = program.as_flow().and_then(|flow| flow.webhook.as_ref());
    let of_webhook = webhook.map(|webhook| engine.missing_secrets(&webhook.secrets, &webhook.said()));
    let missing = engine.missing(program, None).into_iter().chain(of_webhook.unwrap_or_default());
    missing
        // A tool of another program is no part of this environment.
        .filter(|missing| !matches!(missing.what, Missing::Tool { .. }))
        .map(|missing| {
            Diagnostic::error(codes::ABSENT_SECRET, missing.why, missing.pointer.as_str(), place(&missing.pointer))
        })
        .collect()
}

/// Where a model is named that no entry of the project describes.
fn place_of_model(pointer: &str, main: &Tree, project: Option<&Tree>) -> Option<Place> {
    let name = pointer.strip_prefix("/models/")?;
    let names_it = |tree: &Tree, at: &str| {
        let written = tree.at(at).and_then(|node| node.as_str());
        written.is_some_and(|written| syntax::token(written) == name).then(|| tree.place(at))
    };
    let in_main = ["/model", "/properties/model"].into_iter().find_map(|at| names_it(main, at));
    in_main.or_else(|| names_it(project?, "/model"))
}

impl Findings {
    /// Reports the webhooks of these workflows that exclude each other.
    fn report_clashes(&mut self, hooked: &[Arc<Program>]) {
        let clashes = webhook_clashes::clashes(hooked);
        let is_in = |source: &&Source| clashes.iter().any(|fault| fault.place.file == source.name);
        self.sources.extend(hooked.iter().filter_map(|program| program.sources.first()).filter(is_in).cloned());
        self.diagnostics.extend(clashes);
    }

    /// Leaves out that scenarios can't be played because of an error of their document that is reported itself: it is one fault.
    fn leave_repeated_out(&mut self) {
        let mut causes: HashMap<u32, Vec<String>> = HashMap::new();
        for fault in self.diagnostics.iter().filter(|fault| fault.is_error() && fault.code != codes::SCENARIO_DOCUMENT)
        {
            causes.entry(fault.place.line).or_default().push(fault.message.clone());
        }
        self.diagnostics.retain(|fault| {
            let cause = fault.related.first().filter(|_| fault.code == codes::SCENARIO_DOCUMENT);
            let causes = cause.and_then(|cause| causes.get(&cause.line));
            !causes.is_some_and(|causes| causes.iter().any(|cause| fault.message.ends_with(cause.as_str())))
        });
    }

    fn report_unreadable(&mut self, faults: &[Diagnostic]) {
        self.unreadable |= faults.iter().any(|fault| fault.code == codes::FILE);
        self.diagnostics.extend_from_slice(faults);
    }

    /// Each fault once, file by file in their order, and in the order of the text within a file.
    fn settle(&mut self, mut order: FileOrder) {
        for fault in &self.diagnostics {
            order.add(&fault.place.file);
        }
        let mut reported = HashSet::new();
        self.diagnostics.retain(|fault| {
            let place = (Arc::clone(&fault.place.file), fault.place.start, fault.place.end);
            reported.insert((fault.code, place, fault.message.clone()))
        });
        self.diagnostics.sort_by_cached_key(|fault| (order.of(&fault.place.file), fault.place.start));
        let mut kept = BTreeSet::new();
        self.sources.retain(|source| kept.insert(Arc::clone(&source.name)));
    }
}

/// The order of files: as they were found, then as they were first mentioned.
#[derive(Default)]
struct FileOrder(BTreeMap<Arc<str>, usize>);

impl FileOrder {
    fn add(&mut self, file: &Arc<str>) {
        let next = self.0.len();
        self.0.entry(Arc::clone(file)).or_insert(next);
    }

    fn of(&self, file: &str) -> usize {
        self.0.get(file).copied().unwrap_or(usize::MAX)
    }
}
