//! The rules, in the order of their codes.

mod bad_command;
mod bad_header;
mod bad_input;
mod bad_name;
mod bad_number;
mod bad_query;
mod bad_schema;
mod bad_string;
mod bad_url;
mod case_twins;
mod clear_secret;
mod comma;
mod comment;
mod credentials;
mod declared_builtin;
mod duplicate_key;
mod duplicate_tool;
mod empty_file;
mod encoding;
mod hidden_parameter;
mod legacy_tool;
mod loader;
mod missing_field;
mod missing_input;
mod mixed_header;
mod no_description;
mod no_object;
mod no_parameter;
mod no_tools;
mod not_runnable;
mod not_yet;
mod optional_parameter;
mod out_of_bounds;
mod secret;
mod secret_in_prompt;
mod shadowed_builtin;
mod syntax;
mod template_helper;
mod template_name;
mod template_size;
mod template_syntax;
mod too_much;
mod two_of_a_name;
mod unknown_action;
mod unknown_document;
mod unknown_field;
mod unknown_variable;
mod unquoted;
mod unreadable_document;
mod unreadable_file;
mod unused_parameter;
mod wandering_secret;
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
    template_syntax::RULE,
    template_helper::RULE,
    template_name::RULE,
    template_size::RULE,
    unknown_variable::RULE,
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
    credentials::RULE,
    mixed_header::RULE,
    wandering_secret::RULE,
    clear_secret::RULE,
    secret_in_prompt::RULE,
    loader::RULE,
    secret::RULE,
    bad_input::RULE,
    missing_input::RULE,
];
