//! From a written schema to its plan: references are followed, patterns checked, limits read.

use std::collections::HashMap;
use std::sync::Arc;

use jsonschema::Draft;
use referencing::{Registry, Resolved, Resolver, Retrieve, Uri};
use serde_json::{Map, Value};

use super::keyword;
use super::pattern::Pattern;
use super::plan::{Asks, Id, Plan, Ruled, SchemaPart, SchemaRule};
use super::{MAX_FAULTS, SchemaFault, schema_faults};
use crate::program::reference::escape_pointer;

/// The address of a schema that has none.
const ADDRESS: &str = "json-schema:///";
/// The most parts of a schema: those of dynamic references count once for each way they are reached in.
const MAX_PARTS: usize = if cfg!(test) { 60_000 } else { 250_000 };
/// The most bytes of a list of resources that a dynamic reference may be looked up in.
const MAX_SCOPE_BYTES: usize = 4_096;

/// Nothing is fetched, and no file is read.
struct Nowhere;

impl Retrieve for Nowhere {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("nothing is fetched: {uri}").into())
    }
}

/// A part that is still to be read.
pub(super) struct Task<'r> {
    id: Id,
    contents: &'r Value,
    resolver: Resolver<'r>,
    /// The rules of its draft are those that count.
    pub draft: Draft,
    /// Its place, when it is in the schema itself.
    at: Option<String>,
}

/// What has been read so far.
pub(super) struct Lowering<'r> {
    source: &'r Value,
    plan: Plan,
    places: HashMap<usize, String>,
    known: HashMap<(usize, Box<str>), Id>,
    /// References may lead to different places, by the way on which they are reached.
    dynamic: bool,
    todo: Vec<Task<'r>>,
    patterns: HashMap<&'r str, Arc<Pattern>>,
    /// The bytes that patterns may still take.
    room: usize,
    /// What is wrong.
    faults: Vec<SchemaFault>,
}

/// Reads a schema. Its patterns may compile to `room` bytes.
///
/// # Errors
/// What is wrong with it, at most [`MAX_FAULTS`] faults.
pub(super) fn lower(source: &Value, draft: Draft, room: usize) -> Result<Plan, Vec<SchemaFault>> {
    let fault = |fault: &referencing::Error| vec![schema_faults::reference(source, fault, "")];
    let resource = draft.create_resource_ref(source);
    let address = resource.id().unwrap_or(ADDRESS);
    let base = referencing::uri::from_str(address).map_err(|error| fault(&error))?;
    let registry = Registry::new()
        .retriever(Nowhere)
        .draft(draft)
        .add(base.as_str(), resource)
        .and_then(referencing::RegistryBuilder::prepare)
        .map_err(|error| fault(&error))?;
    let resolver = registry.resolver(normal(&registry, base));
    let mut lowering = Lowering {
        source,
        plan: Plan::default(),
        places: HashMap::new(),
        known: HashMap::new(),
        dynamic: is_dynamic(source),
        todo: Vec::new(),
        patterns: HashMap::new(),
        room,
        faults: Vec::new(),
    };
    if has_reference(source) {
        note_places(source, String::new(), &mut lowering.places);
    }
    lowering.add(source, resolver, draft, Some(String::new())).map_err(|fault| vec![fault])?;
    while let Some(task) = lowering.todo.pop() {
        let asks = lowering.read(&task).map_err(|fault| vec![fault])?;
        if lowering.faults.len() >= MAX_FAULTS {
            break;
        }
        if let Some(part) = lowering.plan.parts.get_mut(task.id) {
            part.asks = asks;
        }
    }
    if !lowering.faults.is_empty() {
        lowering.faults.truncate(MAX_FAULTS);
        return Err(lowering.faults);
    }
    lowering.plan.finish();
    super::depth::check(&lowering.plan).map_err(|fault| vec![fault])?;
    Ok(lowering.plan)
}

/// An address with an empty fragment names the same resource.
fn normal(registry: &Registry<'_>, base: Uri<String>) -> Uri<String> {
    if registry.contains_resource(base.as_str()) {
        return base;
    }
    let mut bare = base;
    bare.set_fragment(None);
    bare
}

/// Whether a reference may lead to different places.
fn is_dynamic(part: &Value) -> bool {
    match part {
        Value::Array(items) => items.iter().any(is_dynamic),
        Value::Object(members) => members.iter().any(|(key, member)| {
            matches!(key.as_str(), "$dynamicAnchor" | "$recursiveAnchor")
                || member.as_str().is_some_and(|text| text.contains("json-schema.org/") && key.ends_with("ef"))
                || is_dynamic(member)
        }),
        _ => false,
    }
}

fn has_reference(part: &Value) -> bool {
    match part {
        Value::Array(items) => items.iter().any(has_reference),
        Value::Object(members) => {
            members.iter().any(|(key, member)| (key.starts_with('$') && key.ends_with("ef")) || has_reference(member))
        }
        _ => false,
    }
}

fn address(part: &Value) -> usize {
    std::ptr::from_ref(part).addr()
}

/// The places of each object and each truth value.
fn note_places(part: &Value, at: String, places: &mut HashMap<usize, String>) {
    match part {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| note_places(item, format!("{at}/{index}"), places));
        }
        Value::Object(members) => {
            for (key, member) in members {
                note_places(member, format!("{at}/{}", escape_pointer(key)), places);
            }
            places.insert(address(part), at);
        }
        Value::Bool(_) => drop(places.insert(address(part), at)),
        _ => {}
    }
}

impl<'r> Lowering<'r> {
    /// The number of a part; it is read later if it is new.
    fn add(
        &mut self,
        contents: &'r Value,
        resolver: Resolver<'r>,
        draft: Draft,
        at: Option<String>,
    ) -> Result<Id, SchemaFault> {
        let key = (address(contents), self.scope(&resolver));
        if let Some(id) = self.known.get(&key) {
            return Ok(*id);
        }
        let id = self.plan.parts.len();
        if id >= MAX_PARTS || key.1.len() > MAX_SCOPE_BYTES {
            let message = format!(
                "its references unfold it into more than {MAX_PARTS} parts; use `$ref` to parts under `$defs`, and fewer `$dynamicRef`"
            );
            return Err(SchemaFault::new(at.unwrap_or_default(), message));
        }
        let foreign = at.is_none().then(|| Box::new(contents.clone()));
        let place = at.as_deref().map(Box::from);
        self.plan.parts.push(SchemaPart { at: place, foreign, shared: false, asks: Asks::Nothing });
        self.known.insert(key, id);
        self.todo.push(Task { id, contents, resolver, draft, at });
        Ok(id)
    }

    /// The resources that a dynamic reference is looked up in, outermost first, each once.
    fn scope(&self, resolver: &Resolver<'r>) -> Box<str> {
        if !self.dynamic {
            return Box::default();
        }
        let scopes = resolver.dynamic_scope();
        let mut names: Vec<&str> = scopes.iter().map(|uri| uri.as_str()).collect();
        names.reverse();
        let mut scope = String::new();
        let mut known = std::collections::HashSet::new();
        for name in names.into_iter().filter(|name| known.insert(*name)) {
            scope.push_str(name);
            scope.push(' ');
        }
        scope.push_str(resolver.base_uri().as_str());
        scope.into()
    }

    fn read(&mut self, task: &Task<'r>) -> Result<Asks, SchemaFault> {
        let members = match task.contents {
            Value::Bool(true) => return Ok(Asks::Nothing),
            Value::Bool(false) => return Ok(Asks::Never),
            Value::Object(members) => members,
            other => return Err(schema_faults::keyword(task.at.clone().unwrap_or_default(), other)),
        };
        if task.draft < Draft::Draft201909
            && let Some(Value::String(reference)) = members.get("$ref")
        {
            // Up to draft 7, nothing beside a reference counts.
            return Ok(Asks::Same(self.refer(task, reference)?));
        }
        let mut rules: Vec<Ruled> = Vec::new();
        for (name, value) in members {
            let Some(name) = keyword::known(task.draft, name) else { continue };
            let read = keyword::read(self, task, keyword::Written { name, value, members }, &mut rules);
            self.faults.extend(read.err());
        }
        rules.sort_by_key(|ruled| keyword::order(ruled.keyword));
        Ok(match rules.as_slice() {
            [] => Asks::Nothing,
            [Ruled { rule: SchemaRule::Ref(part), .. }] => Asks::Same(*part),
            _ => Asks::Rules(rules.into()),
        })
    }

    /// The part that a reference leads to.
    pub(super) fn refer(&mut self, task: &Task<'r>, reference: &str) -> Result<Id, SchemaFault> {
        let resolved = task.resolver.lookup(reference);
        self.resolved(task, resolved, "$ref")
    }

    /// The part that the recursive reference of draft 2019-09 leads to.
    pub(super) fn recurse(&mut self, task: &Task<'r>) -> Result<Id, SchemaFault> {
        let resolved = task.resolver.lookup_recursive_ref();
        self.resolved(task, resolved, "$recursiveRef")
    }

    fn resolved(
        &mut self,
        task: &Task<'r>,
        resolved: Result<Resolved<'r>, referencing::Error>,
        name: &str,
    ) -> Result<Id, SchemaFault> {
        let resolved =
            resolved.map_err(|error| schema_faults::reference(self.source, &error, &Self::path(task, name)))?;
        let (contents, resolver, draft) = resolved.into_inner();
        let at = self.places.get(&address(contents)).cloned();
        let draft = of(draft, contents, task.draft);
        self.add(contents, resolver, draft, at)
    }

    pub(super) fn part(&mut self, task: &Task<'r>, contents: &'r Value, below: &str) -> Result<Id, SchemaFault> {
        let draft = of(task.draft, contents, task.draft);
        let resolver = task
            .resolver
            .in_subresource(draft.create_resource_ref(contents))
            .map_err(|error| schema_faults::reference(self.source, &error, &Self::path(task, below)))?;
        let at = task.at.as_ref().map(|at| format!("{at}/{below}"));
        self.add(contents, resolver, draft, at)
    }

    /// The parts of a list.
    pub(super) fn parts(&mut self, task: &Task<'r>, written: &'r Value, name: &str) -> Result<Box<[Id]>, SchemaFault> {
        let Value::Array(items) = written else { return Err(schema_faults::keyword(Self::path(task, name), written)) };
        items.iter().enumerate().map(|(at, item)| self.part(task, item, &format!("{name}/{at}"))).collect()
    }

    /// The parts of an object, with their names.
    pub(super) fn named(
        &mut self,
        task: &Task<'r>,
        members: &'r Map<String, Value>,
        name: &str,
    ) -> Result<Vec<(Box<str>, Id)>, SchemaFault> {
        let mut parts = Vec::with_capacity(members.len());
        for (key, member) in members {
            let part = self.part(task, member, &format!("{name}/{}", escape_pointer(key)))?;
            parts.push((key.as_str().into(), part));
        }
        Ok(parts)
    }

    /// A pattern, measured once however often it occurs.
    pub(super) fn pattern(
        &mut self,
        task: &Task<'r>,
        written: &'r str,
        name: &str,
    ) -> Result<Arc<Pattern>, SchemaFault> {
        if let Some(known) = self.patterns.get(written) {
            return Ok(Arc::clone(known));
        }
        let path = Self::path(task, name);
        let pattern = Pattern::read(written).ok_or_else(|| schema_faults::pattern(path.clone(), written))?;
        self.plan.pattern_bytes += pattern.bytes;
        if self.plan.pattern_bytes > self.room {
            return Err(super::too_many_patterns(path));
        }
        let pattern = Arc::new(pattern);
        self.patterns.insert(written, Arc::clone(&pattern));
        Ok(pattern)
    }

    /// The place of a keyword of a part.
    pub(super) fn path(task: &Task<'_>, name: &str) -> String {
        format!("{}/{name}", task.at.as_deref().unwrap_or_default())
    }
}

/// The draft of a part: its own where it names one, else that of the part around it.
fn of(draft: Draft, contents: &Value, outer: Draft) -> Draft {
    match draft.detect(contents) {
        Draft::Unknown => outer,
        known => known,
    }
}
