//! What a delivery of another service is to a workflow: whether it starts a run, and the input of that.

use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use super::condition::{CompiledCondition, OrderRules};
use super::null_member::without_nulls;
use super::reference::{Field, Scope};
use super::schema::Schema;
use super::text_input::read_texts;
use crate::language::scenario::ScenarioDelivery;
use crate::language::webhook::{HmacSettings, Webhook, WebhookScheme};
use crate::program::json_texts::JsonRule;

/// What the key of a secret is written behind.
const SECRET: &str = "orgconfig:";
/// Headers with credentials, which no workflow reads of a delivery.
pub const CREDENTIAL_HEADERS: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// The deliveries that start runs of a workflow.
#[derive(Debug)]
pub struct FlowWebhook {
    /// The name in the address.
    pub name: String,
    /// How they are signed.
    pub scheme: WebhookScheme,
    /// The same, in the words of the document, for `hmac`.
    pub hmac: HmacSettings,
    /// The keys of the secrets in the project's `orgconfig`.
    pub secrets: Vec<String>,
    /// The organisation of the runs.
    pub org: Option<String>,
    when: Option<CompiledCondition>,
    input: Field,
}

/// A delivery whose signature is right.
#[derive(Debug)]
pub struct Delivery {
    names: Map<String, Value>,
    /// When it came, RFC 3339.
    now: String,
}

impl Delivery {
    /// A delivery: its body, its headers by their names in lower case, and the moment at which it came.
    pub fn new(body: Value, headers: Map<String, Value>, now: String) -> Self {
        let names = [("body", body), ("headers", Value::Object(headers))];
        Self { names: names.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(), now }
    }

    /// The delivery of a scenario, which comes at this moment.
    pub fn of_scenario(written: &ScenarioDelivery, now: &str) -> Self {
        let ScenarioDelivery { body, headers } = written;
        let headers = headers.iter().map(|(name, text)| (name.to_ascii_lowercase(), Value::from(text.as_str())));
        Self::new(body.clone(), headers.collect(), now.to_owned())
    }
}

/// What a workflow judges deliveries by, beside its webhook.
#[derive(Debug, Clone, Copy)]
pub struct DeliveryRules<'r> {
    /// The schema of its input.
    pub schema: Option<&'r Schema>,
    /// The zone in which a date alone begins.
    pub zone: Option<&'r TimeZone>,
    /// The names whose values no sentence shows, beside those that it never does.
    pub hidden: &'r [String],
}

/// What comes of a delivery.
#[derive(Debug, PartialEq)]
pub enum DeliveryOutcome {
    /// A run with this input is started.
    Starts(Value),
    /// Nothing: `when` does not hold.
    Skipped,
}

impl FlowWebhook {
    /// The webhook of a workflow of this name; none when it can't be read, which is reported.
    pub fn of(written: &Webhook, workflow: &str) -> Option<Self> {
        let Webhook { verify, secret, name, org, when, input, hmac } = written;
        let when = when.as_ref().map(|when| CompiledCondition::compile(when).ok());
        let input = Value::Object(input.clone().unwrap_or_default());
        let keys = secret.all().iter().map(|secret| secret.strip_prefix(SECRET).map(str::to_owned));
        Some(Self {
            name: name.clone().unwrap_or_else(|| workflow.to_owned()),
            scheme: *verify,
            hmac: hmac.clone().unwrap_or_default(),
            secrets: keys.collect::<Option<Vec<_>>>()?,
            org: org.clone(),
            when: match when {
                Some(when) => Some(when?),
                None => None,
            },
            input: Field::compile(&input).ok()?,
        })
    }

    /// What it is called in a sentence.
    pub fn said(&self) -> String {
        format!("the webhook `{}`", self.name)
    }

    /// Whether deliveries of both are verified in the same way, so that one address may have both.
    pub fn is_verified_as(&self, other: &Self) -> bool {
        let mut secrets = [self.secrets.clone(), other.secrets.clone()];
        secrets.iter_mut().for_each(|secrets| secrets.sort());
        let [own, others] = secrets;
        self.scheme == other.scheme && self.hmac == other.hmac && own == others
    }

    /// What comes of a delivery.
    ///
    /// # Errors
    /// A sentence without a final stop: why its `when` can't be judged, or its input can't be made.
    pub fn outcome(&self, delivery: &Delivery, rules: &DeliveryRules<'_>) -> Result<DeliveryOutcome, String> {
        let scope = Scope {
            context: &[&delivery.names],
            now: &delivery.now,
            ..Scope::of_input(&Value::Null, JsonRule::PRESENT.into())
        };
        let DeliveryRules { schema, zone, hidden } = *rules;
        if let Some(when) = &self.when {
            let holds = when.holds(&scope, OrderRules { zone, hidden, ..OrderRules::PRESENT });
            if !holds.map_err(|why| format!("`when` can't be judged: {why}"))? {
                return Ok(DeliveryOutcome::Skipped);
            }
        }
        let mut input = self.input.resolve(&scope).map_err(|why| format!("the input can't be made: {why}"))?;
        if let Some(schema) = schema {
            let unread = read_texts(schema.source(), &mut input);
            unread.map_err(|unread| format!("the input does not fit: {}", unread.sentence(hidden)))?;
            if !schema.faults(&input).is_empty()
                && let Some(read) = without_nulls(schema, &input)
            {
                input = read;
            }
            // A file of the input is read when the run starts.
            let fault = schema.faults(&input).into_iter().next().filter(|_| !takes_files(schema.source()));
            if let Some(fault) = fault {
                return Err(format!("the input does not fit: {}", fault.message));
            }
        }
        Ok(DeliveryOutcome::Starts(input))
    }
}

/// Whether a schema declares a file. A document is never deeper than its reader allows: the recursion ends.
fn takes_files(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(name, value)| name == "contentMediaType" || takes_files(value)),
        Value::Array(entries) => entries.iter().any(takes_files),
        _ => false,
    }
}
