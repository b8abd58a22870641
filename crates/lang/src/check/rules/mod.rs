//! The rules, in the order of their codes. Their titles and pages are rows of [`codes::TABLE`](crate::diagnostic::codes::TABLE),
//! with those of the faults that the compiler reports.

mod absent_database;
mod absent_file;
mod ask_target;
mod bad_base_url;
mod bad_datasource;
mod bad_host_entry;
mod bad_model_header;
mod bad_model_setting;
mod bad_operand;
mod bad_order;
mod bad_pointer;
mod bad_public_url;
mod bad_schedule;
mod bad_secret_command;
mod bad_sql;
mod bad_store;
mod bad_token;
mod bad_webhook;
mod body_of_get;
mod budget_too_small;
mod concurrency_key;
mod constant;
mod constant_condition;
mod cost_without_price;
mod cut_list;
mod dead_case;
mod embedded_tool;
mod empty_budget;
mod empty_range;
mod equal_limits;
mod equal_times;
mod file_input;
mod filled_variable;
mod fixed_temperature;
mod flow_limits;
mod folder_outside;
mod form_fields;
mod hidden_item;
mod hidden_result;
mod hints_without_room;
mod history_too_small;
mod host_from_value;
mod host_not_allowed;
mod idle_approval;
mod idle_call_limit;
mod idle_on_cancel;
mod idle_on_failure;
mod idle_on_uncertain;
mod idle_operand;
mod idle_rate;
mod idle_spending_limit;
mod item_key;
mod key_in_the_clear;
mod limit_without_price;
mod limits_at_odds;
mod mail_target;
mod many_tools;
mod mcp_server;
mod missing_column;
mod missing_script;
mod misspelt_secret;
mod named_secret;
mod native_name;
mod near_model;
mod needless_write;
mod needs_responses;
mod no_answer_link;
mod no_member;
mod notify_target;
mod null_input;
mod object_in_address;
mod odd_result_key;
mod odd_status;
mod offered_tool;
mod older_decision;
mod one_call_a_turn;
mod plain_variable;
mod private_host;
mod program_not_allowed;
mod prompt_without;
mod query_input;
mod quoted_placeholder;
mod refused_write;
mod repeated_model;
mod reply_fills_window;
mod request_limit;
mod retried_doubt;
mod retry_bounds;
mod retry_without_idempotence;
mod script_reply;
mod secret_in_args;
mod secret_in_step;
mod server_text;
mod shell_script;
mod shell_syntax;
mod small_limit;
mod step_field;
mod step_input;
mod step_setting;
mod stuck_never_fires;
mod temperature_too_high;
mod timeout_below_tool;
mod unasked_calls;
mod uncancelled_items;
mod unheld_step;
mod unknown_column;
mod unknown_datasource;
mod unknown_limit;
mod unknown_limited_action;
mod unknown_required_tool;
mod unknown_secret;
mod unknown_zone;
mod unmet_route;
mod unpinned_server;
mod unreached_limit;
mod unsent_schema;
mod unsure_operand;
mod unused_action;
mod unused_hint;
mod webhook_input;
mod written_key;
mod written_secret;
mod wrong_unit;

use super::Rule;

/// All rules.
pub const RULES: &[Rule] = &[
    script_reply::RULE,
    unused_action::RULE,
    unknown_secret::RULE,
    unknown_datasource::RULE,
    near_model::RULE,
    repeated_model::RULE,
    odd_result_key::RULE,
    hidden_result::RULE,
    missing_script::RULE,
    native_name::RULE,
    plain_variable::RULE,
    absent_file::RULE,
    bad_datasource::RULE,
    bad_base_url::RULE,
    bad_store::RULE,
    stuck_never_fires::RULE,
    unused_hint::RULE,
    hints_without_room::RULE,
    timeout_below_tool::RULE,
    history_too_small::RULE,
    reply_fills_window::RULE,
    cost_without_price::RULE,
    budget_too_small::RULE,
    fixed_temperature::RULE,
    temperature_too_high::RULE,
    secret_in_step::RULE,
    named_secret::RULE,
    host_from_value::RULE,
    host_not_allowed::RULE,
    private_host::RULE,
    program_not_allowed::RULE,
    shell_script::RULE,
    retried_doubt::RULE,
    refused_write::RULE,
    needless_write::RULE,
    bad_host_entry::RULE,
    written_secret::RULE,
    written_key::RULE,
    key_in_the_clear::RULE,
    secret_in_args::RULE,
    one_call_a_turn::RULE,
    retry_bounds::RULE,
    step_field::RULE,
    prompt_without::RULE,
    empty_budget::RULE,
    folder_outside::RULE,
    body_of_get::RULE,
    odd_status::RULE,
    filled_variable::RULE,
    misspelt_secret::RULE,
    idle_approval::RULE,
    shell_syntax::RULE,
    idle_on_uncertain::RULE,
    bad_pointer::RULE,
    bad_token::RULE,
    constant_condition::RULE,
    bad_operand::RULE,
    step_input::RULE,
    step_setting::RULE,
    bad_schedule::RULE,
    wrong_unit::RULE,
    limits_at_odds::RULE,
    retry_without_idempotence::RULE,
    bad_public_url::RULE,
    no_member::RULE,
    object_in_address::RULE,
    item_key::RULE,
    no_answer_link::RULE,
    unreached_limit::RULE,
    unknown_required_tool::RULE,
    unheld_step::RULE,
    older_decision::RULE,
    cut_list::RULE,
    dead_case::RULE,
    request_limit::RULE,
    idle_on_failure::RULE,
    needs_responses::RULE,
    bad_model_setting::RULE,
    unsent_schema::RULE,
    bad_sql::RULE,
    unknown_column::RULE,
    absent_database::RULE,
    quoted_placeholder::RULE,
    missing_column::RULE,
    bad_model_header::RULE,
    bad_secret_command::RULE,
    file_input::RULE,
    unknown_zone::RULE,
    bad_webhook::RULE,
    webhook_input::RULE,
    concurrency_key::RULE,
    idle_on_cancel::RULE,
    embedded_tool::RULE,
    ask_target::RULE,
    mail_target::RULE,
    hidden_item::RULE,
    form_fields::RULE,
    notify_target::RULE,
    mcp_server::RULE,
    unpinned_server::RULE,
    many_tools::RULE,
    server_text::RULE,
    offered_tool::RULE,
    idle_spending_limit::RULE,
    limit_without_price::RULE,
    equal_limits::RULE,
    unknown_limit::RULE,
    idle_rate::RULE,
    small_limit::RULE,
    idle_call_limit::RULE,
    unknown_limited_action::RULE,
    unmet_route::RULE,
    uncancelled_items::RULE,
];
