//! The rules, in the order of their codes.

mod absent_file;
mod bad_base_url;
mod bad_command;
mod bad_datasource;
mod bad_header;
mod bad_host_entry;
mod bad_input;
mod bad_name;
mod bad_number;
mod bad_pointer;
mod bad_query;
mod bad_schema;
mod bad_store;
mod bad_string;
mod bad_url;
mod body_of_get;
mod budget_too_small;
mod case_twins;
mod clear_secret;
mod comma;
mod comment;
mod cost_without_price;
mod credentials;
mod declared_builtin;
mod duplicate_key;
mod duplicate_tool;
mod empty_budget;
mod empty_file;
mod encoding;
mod filled_header;
mod filled_variable;
mod fixed_temperature;
mod folder_outside;
mod hidden_parameter;
mod hidden_result;
mod hints_without_room;
mod history_too_small;
mod host_from_value;
mod host_not_allowed;
mod impossible_schema;
mod key_in_the_clear;
mod legacy_tool;
mod loader;
mod loop_cycle;
mod loops_too_deep;
mod loosened;
mod missing_field;
mod missing_input;
mod missing_script;
mod mixed_header;
mod native_name;
mod near_model;
mod needless_write;
mod no_description;
mod no_object;
mod no_parameter;
mod no_tools;
mod not_runnable;
mod not_yet;
mod odd_result_key;
mod odd_status;
mod one_call_a_turn;
mod optional_parameter;
mod out_of_bounds;
mod plain_variable;
mod private_host;
mod program_not_allowed;
mod prompt_without;
mod refused_write;
mod repeated_model;
mod reply_fills_window;
mod retried_doubt;
mod retry_bounds;
mod secret;
mod secret_in_args;
mod secret_in_prompt;
mod shadowed_builtin;
mod shell_script;
mod step_field;
mod stuck_never_fires;
mod syntax;
mod temperature_too_high;
mod template_helper;
mod template_name;
mod template_size;
mod template_syntax;
mod timeout_below_tool;
mod too_much;
mod two_of_a_name;
mod unknown_action;
mod unknown_datasource;
mod unknown_document;
mod unknown_field;
mod unknown_loop;
mod unknown_secret;
mod unknown_variable;
mod unknown_workflow;
mod unquoted;
mod unreadable_document;
mod unreadable_file;
mod unused_action;
mod unused_hint;
mod unused_parameter;
mod wandering_secret;
mod written_key;
mod written_secret;
mod wrong_document;
mod wrong_length;
mod wrong_type;
mod wrong_word;

use super::Rule;

/// All rules.
pub const RULES: &[Rule] = &[
    unreadable_file::RULE,
    syntax::RULE,
    encoding::RULE,
    empty_file::RULE,
    bad_string::RULE,
    bad_number::RULE,
    comma::RULE,
    comment::RULE,
    duplicate_key::RULE,
    too_much::RULE,
    unknown_field::RULE,
    missing_field::RULE,
    wrong_word::RULE,
    wrong_type::RULE,
    out_of_bounds::RULE,
    wrong_length::RULE,
    unknown_document::RULE,
    unreadable_document::RULE,
    not_yet::RULE,
    wrong_document::RULE,
    unknown_action::RULE,
    two_of_a_name::RULE,
    bad_name::RULE,
    duplicate_tool::RULE,
    shadowed_builtin::RULE,
    legacy_tool::RULE,
    declared_builtin::RULE,
    no_tools::RULE,
    case_twins::RULE,
    unknown_loop::RULE,
    unused_action::RULE,
    unknown_secret::RULE,
    unknown_datasource::RULE,
    near_model::RULE,
    repeated_model::RULE,
    odd_result_key::RULE,
    hidden_result::RULE,
    missing_script::RULE,
    loop_cycle::RULE,
    loops_too_deep::RULE,
    template_syntax::RULE,
    template_helper::RULE,
    template_name::RULE,
    template_size::RULE,
    unknown_variable::RULE,
    native_name::RULE,
    unknown_workflow::RULE,
    plain_variable::RULE,
    absent_file::RULE,
    no_parameter::RULE,
    optional_parameter::RULE,
    unused_parameter::RULE,
    hidden_parameter::RULE,
    bad_schema::RULE,
    no_object::RULE,
    no_description::RULE,
    not_runnable::RULE,
    bad_url::RULE,
    bad_header::RULE,
    unquoted::RULE,
    bad_query::RULE,
    bad_command::RULE,
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
    credentials::RULE,
    mixed_header::RULE,
    wandering_secret::RULE,
    clear_secret::RULE,
    secret_in_prompt::RULE,
    loader::RULE,
    secret::RULE,
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
    impossible_schema::RULE,
    one_call_a_turn::RULE,
    retry_bounds::RULE,
    step_field::RULE,
    prompt_without::RULE,
    empty_budget::RULE,
    folder_outside::RULE,
    body_of_get::RULE,
    odd_status::RULE,
    filled_variable::RULE,
    loosened::RULE,
    filled_header::RULE,
    bad_pointer::RULE,
    bad_input::RULE,
    missing_input::RULE,
];
