//! The traits for tools that are written in Rust: an input type, an async function, errors by `?`.

use std::error::Error;
use std::future::Future;
use std::sync::Arc;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::drive::future::BoxFuture;
use crate::drive::tool::call::ToolCall;
use loopctl_engine::event::ToolFault;
use loopctl_lang::compile::ToolSignature;

/// A tool written in Rust. A loop declares it by its name: `{"type": "action", "name": NAME}`.
///
/// ```
/// use loopctl::{EmbeddedTool, ToolCall, ToolError};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Part {
///     /// The part's number, like P-7
///     part: String,
/// }
///
/// struct Stock;
///
/// impl EmbeddedTool for Stock {
///     type Input = Part;
///     type Output = u32;
///     const NAME: &'static str = "stock";
///     const DESCRIPTION: &'static str = "Returns how many of a part are in stock.";
///     const IDEMPOTENT: bool = true;
///
///     async fn call(&self, input: Part, _: &ToolCall<'_>) -> Result<u32, ToolError> {
///         match input.part.as_str() {
///             "P-7" => Ok(12),
///             _ => Err(ToolError::new("unknown part")),
///         }
///     }
/// }
/// ```
pub trait EmbeddedTool: Send + Sync + 'static {
    /// The input. Its JSON Schema (by schemars, draft 2020-12) is what the model sees and what each call is
    /// validated against; doc comments of its fields become their descriptions.
    type Input: DeserializeOwned + JsonSchema + Send;

    /// What the model reads. At most 128 levels deep as JSON.
    type Output: Serialize;

    /// The name that loops declare.
    const NAME: &'static str;

    /// What the model reads about the tool.
    const DESCRIPTION: &'static str;

    /// Whether a call may be made again without harm. After a crash an idempotent call is made again with the same
    /// [`key`](ToolCall::key); for any other one a human is asked.
    const IDEMPOTENT: bool = false;

    /// Whether a call only reads. Idempotent calls that only read are made at the same time, if they stand beside each
    /// other in a reply; see `order` of a loop.
    const READ_ONLY: bool = false;

    /// Makes a call. The future is dropped at the call's deadline, and must not block its thread.
    ///
    /// # Errors
    /// The model reads an error as the result of the call; the run continues.
    fn call(
        &self,
        input: Self::Input,
        call: &ToolCall<'_>,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;

    /// The same tool under another name: a program may have several of one type.
    fn named(self, name: impl Into<String>) -> RenamedTool<Self>
    where
        Self: Sized,
    {
        RenamedTool { name: name.into(), tool: self }
    }
}

/// A tool under a name of its own: [`EmbeddedTool::named`].
#[derive(Debug, Clone)]
pub struct RenamedTool<T> {
    name: String,
    tool: T,
}

/// A failed call of an [`EmbeddedTool`]. Every error converts to one by `?`, also `anyhow::Error` and `Box<dyn Error + Send + Sync>`: the
/// model then reads `failed`, and the error's text goes to the trace, because it may hold what is not for a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError(ToolFault);

impl ToolError {
    /// A failure that the model reads as `class`: a few words, like `unknown part`.
    pub fn new(class: impl Into<String>) -> Self {
        Self(ToolFault { class: class.into(), ..ToolFault::default() })
    }

    /// The same failure with details for the trace, which the model does not read.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = detail.into();
        self
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self::new("failed").detail(error.into().to_string())
    }
}

/// A tool whose name and schema are known at run time only. Every [`EmbeddedTool`] is one; implement this trait
/// yourself for tools that come from a configuration or another protocol. `Arc<dyn DynTool>` is one, too.
pub trait DynTool: Send + Sync {
    /// The name that loops declare.
    fn name(&self) -> &str;

    /// What the model reads about the tool.
    fn description(&self) -> &str;

    /// The JSON Schema of its input.
    fn parameters(&self) -> Value;

    /// Whether a call may be made again without harm.
    fn idempotent(&self) -> bool {
        false
    }

    /// Whether a call only reads.
    fn read_only(&self) -> bool {
        false
    }

    /// The tool as the compiler knows it: for documents that are compiled from [`Texts`](loopctl_lang::compile::Texts).
    fn signature(&self) -> ToolSignature {
        ToolSignature {
            name: self.name().to_owned(),
            description: self.description().to_owned(),
            parameters: self.parameters(),
            idempotent: self.idempotent(),
            read_only: self.read_only(),
        }
    }

    /// Makes a call. The future is dropped at the call's deadline, and must not block its thread.
    ///
    /// # Errors
    /// The model reads an error as the result of the call; the run continues.
    fn call<'a>(&'a self, call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<Value, ToolFault>>;
}

impl<T: EmbeddedTool> DynTool for T {
    fn name(&self) -> &str {
        T::NAME
    }

    fn description(&self) -> &str {
        T::DESCRIPTION
    }

    fn parameters(&self) -> Value {
        let generator = SchemaSettings::draft2020_12().with(|settings| settings.meta_schema = None).into_generator();
        let mut schema = generator.into_root_schema_for::<T::Input>();
        // The name of the Rust type means nothing to a model.
        schema.remove("title");
        schema.to_value()
    }

    fn idempotent(&self) -> bool {
        T::IDEMPOTENT
    }

    fn read_only(&self) -> bool {
        T::READ_ONLY
    }

    fn call<'a>(&'a self, call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<Value, ToolFault>> {
        Box::pin(async move {
            let input = <T::Input as Deserialize>::deserialize(&**call.input).map_err(|error| refused(&error))?;
            let output = EmbeddedTool::call(self, input, call).await.map_err(|ToolError(fault)| fault)?;
            serde_json::to_value(output).map_err(|error| ToolError::from(error).0)
        })
    }
}

impl<T: DynTool + ?Sized> DynTool for Arc<T> {
    fn name(&self) -> &str {
        T::name(self)
    }

    fn description(&self) -> &str {
        T::description(self)
    }

    fn parameters(&self) -> Value {
        T::parameters(self)
    }

    fn idempotent(&self) -> bool {
        T::idempotent(self)
    }

    fn read_only(&self) -> bool {
        T::read_only(self)
    }

    fn signature(&self) -> ToolSignature {
        T::signature(self)
    }

    fn call<'a>(&'a self, call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<Value, ToolFault>> {
        T::call(self, call)
    }
}

impl<T: DynTool> DynTool for RenamedTool<T> {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        self.tool.description()
    }

    fn parameters(&self) -> Value {
        self.tool.parameters()
    }

    fn idempotent(&self) -> bool {
        self.tool.idempotent()
    }

    fn read_only(&self) -> bool {
        self.tool.read_only()
    }

    fn call<'a>(&'a self, call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<Value, ToolFault>> {
        self.tool.call(call)
    }
}

/// The input matches its schema, but the type is narrower: for example, a number is too large for it.
fn refused(error: &serde_json::Error) -> ToolFault {
    ToolFault { class: format!("invalid input: {error}"), ..ToolFault::default() }
}
