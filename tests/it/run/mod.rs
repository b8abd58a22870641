//! Black-box tests: the real program against documents, scripts and local servers.

#[cfg(all(unix, debug_assertions))]
mod adopted;
mod agent_outages;
mod always_resumed;
mod approval_conditions;
mod approval_expiry;
mod approvals;
mod bad_documents;
mod bad_replies;
mod budget;
mod builtins;
mod cage;
mod call_order;
#[cfg(unix)]
mod calls_in_flight;
mod cascades;
mod command_group;
mod command_tool;
#[cfg(unix)]
mod completions;
mod continued;
mod controls;
mod db_tool;
mod decision_record;
mod demo;
mod denied;
mod derived_parameters;
mod descriptors;
mod dialects;
mod dialects_native;
mod edited;
mod events;
mod fallback_turns;
mod fitted_values;
mod given_files;
mod held_out;
mod history;
mod hostile_arguments;
mod hostile_schemas;
mod hostile_texts;
mod http_answers;
mod http_tool;
#[cfg(unix)]
mod hyphen_files;
mod hyphen_workflows;
mod init;
mod input_files;
mod interactive;
mod item_labels;
mod item_limits;
mod journals;
mod keys;
mod left_out;
mod long_lists;
mod lost_calls;
mod matcher_tool;
mod missing_values;
mod mistakes;
mod models;
#[cfg(unix)]
#[cfg(feature = "mysql")]
mod mysql_check;
#[cfg(feature = "mysql")]
mod mysql_limits;
#[cfg(feature = "mysql")]
mod mysql_tool;
mod named_documents;
mod on_pause;
mod pauses;
mod postgres_check;
mod postgres_tool;
mod previous;
mod private;
mod provider_limits;
mod provider_replies;
mod provider_requests;
mod provider_usage;
mod providers;
mod recorded_document;
mod redaction;
mod refused_replies;
mod remembered;
mod required_secrets;
mod reruns;
mod retried_steps;
mod retries;
mod script_cases;
mod secrets;
mod seeds;
mod seeds_cms;
mod seeds_deep_research;
mod seeds_executionkit;
mod seeds_hyphen;
mod seeds_loomflow;
mod side_by_side;
mod signals;
#[cfg(debug_assertions)]
mod signals_everywhere;
mod signed_requests;
mod stores_alike;
mod streaming;
mod stuck;
mod subloops;
mod table_tool;
#[cfg(feature = "otel")]
mod telemetry;
#[cfg(feature = "otel")]
mod telemetry_traces;
mod termination;
#[cfg(all(unix, debug_assertions))]
mod tool_retry;
mod trace_at;
mod trace_items;
mod trace_iteration;
mod trace_page;
mod unanswered;
mod whole_answers;
mod whole_data;
mod window;
mod workflow_cut;
mod workflow_documents;
mod workflow_faults;
mod workflow_humans;
mod workflow_tools;
mod workflows;
mod written_calls;
