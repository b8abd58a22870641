//! What each type of field takes, and what it refuses.

use serde_json::{Map, Value, json};

use super::{AskedField, FieldFault, FormAsks, answer_schema, literal_faults, read_answer};
use crate::language::form::{Form, FormField};
use crate::program::json_texts::JsonRule;
use crate::program::reference::Scope;
use crate::program::schema::Schema;
use crate::program::timetable::zone;

/// A field that is asked for.
fn field(written: Value) -> AskedField {
    serde_json::from_value(written).unwrap()
}

fn of_type(kind: &str) -> AskedField {
    field(json!({ "name": "a", "type": kind, "required": true, "choices": ["damage", "delay"] }))
}

/// A number as it is written.
fn number(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn each_type_takes_its_values_and_texts_that_are_exactly_such_values() {
    let taken: &[(&str, Value, Value)] = &[
        ("text", json!(" a "), json!(" a ")),
        ("long_text", json!("a\nb"), json!("a\nb")),
        ("integer", json!(-7), json!(-7)),
        ("integer", json!("7"), json!(7)),
        ("integer", number("100.0"), json!(100)),
        ("integer", number("18446744073709551615"), number("18446744073709551615")),
        ("number", number("12.50"), number("12.50")),
        ("number", json!("1e2"), number("1e2")),
        ("number", json!("0.10"), number("0.10")),
        ("date", json!("2024-02-29"), json!("2024-02-29")),
        ("time", json!("23:59"), json!("23:59")),
        ("time", json!("09:30:15"), json!("09:30:15")),
        ("choice", json!("delay"), json!("delay")),
        ("yes_no", json!(false), json!(false)),
        ("yes_no", json!("yes"), json!(true)),
        ("yes_no", json!("false"), json!(false)),
    ];
    for (kind, given, value) in taken {
        let read = of_type(kind).read(Some(given));
        assert_eq!(read.as_ref().map(Value::to_string), Ok(value.to_string()), "{kind} {given}");
    }
}

#[cfg(feature = "exact-numbers")]
#[test]
fn nothing_is_rounded_or_guessed() {
    let refused: &[(&str, Value)] = &[
        ("text", json!("a\nb")),
        ("text", json!("a\u{2028}b")),
        ("text", json!("a\u{85}b")),
        ("text", json!("a\u{0}b")),
        ("text", json!(" \t ")),
        ("text", json!(7)),
        ("text", json!("x".repeat(1_001))),
        ("text", json!("")),
        ("long_text", json!("x".repeat(20_001))),
        ("integer", json!("7 ")),
        ("integer", json!("+7")),
        ("integer", json!("0x7")),
        ("integer", number("7.5")),
        ("integer", json!("7.0")),
        ("integer", number("1e2")),
        ("integer", number("18446744073709551616")),
        ("integer", json!(true)),
        ("number", json!("7 ")),
        ("number", json!("{\"$serde_json::private::Number\":\"7\"}")),
        ("number", json!("\u{a0}7")),
        ("number", json!("7,5")),
        ("number", json!("1_000")),
        ("number", json!("NaN")),
        ("number", json!("")),
        ("number", number("1e400")),
        ("number", number("1e-400")),
        ("number", json!([7])),
        ("date", json!("2026-02-30")),
        ("date", json!("2026-2-3")),
        ("date", json!("03.02.2026")),
        ("date", json!("2026-02-03T00:00:00Z")),
        ("date", json!("+002026-02-03")),
        ("date", json!("２０２６-02-03")),
        ("time", json!("24:00")),
        ("time", json!("9:30")),
        ("time", json!("09:60")),
        ("time", json!("09:30:60")),
        ("time", json!("09:30:15:00")),
        ("time", json!("09")),
        ("choice", json!("Delay")),
        ("choice", json!("delay ")),
        ("choice", json!("")),
        ("yes_no", json!("Yes")),
        ("yes_no", json!(1)),
        ("yes_no", json!("y")),
    ];
    for (kind, given) in refused {
        assert!(of_type(kind).read(Some(given)).is_err(), "{kind} {given}");
    }
}

#[cfg(feature = "exact-numbers")]
#[test]
fn bounds_are_compared_by_their_digits_days_and_seconds() {
    let bounded = |kind: &str, min: Value, max: Value| {
        field(json!({ "name": "a", "type": kind, "required": true, "min": min, "max": max }))
    };
    let amount = bounded("number", json!(0), number("0.30000000000000000000000000001"));
    assert!(amount.read(Some(&number("0.3"))).is_ok());
    let why = amount.read(Some(&number("0.30000000000000000000000000002"))).unwrap_err();
    assert!(why.ends_with("is more than 0.30000000000000000000000000001"), "{why}");
    assert!(amount.read(Some(&number("-0.0"))).is_ok());
    assert_eq!(amount.read(Some(&json!(-1))), Err("-1 is less than 0".to_owned()));
    let day = bounded("date", json!("2026-01-31"), json!("2026-03-01"));
    assert_eq!(day.read(Some(&json!("2026-01-30"))), Err("2026-01-30 is before 2026-01-31".to_owned()));
    assert!(day.read(Some(&json!("2026-03-01"))).is_ok());
    let hour = bounded("time", json!("09:30:00"), json!("10:00"));
    assert!(hour.read(Some(&json!("09:30"))).is_ok());
    assert_eq!(hour.read(Some(&json!("10:00:01"))), Err("10:00:01 is after 10:00".to_owned()));
}

#[test]
fn what_is_left_out_has_its_default_or_is_null_and_all_faults_are_said() {
    let fields = [
        field(json!({ "name": "amount", "type": "number", "required": true })),
        field(
            json!({ "name": "reason", "type": "choice", "required": false, "choices": ["damage", "delay"], "default": "delay" }),
        ),
        field(json!({ "name": "until", "type": "date", "required": false })),
    ];
    let read = |given: Value| {
        let Value::Object(given) = given else { panic!("an object") };
        read_answer(&fields, &given)
    };
    let values = read(json!({ "amount": 7 })).unwrap();
    let values: Map<String, Value> = values.into_iter().collect();
    assert_eq!(Value::Object(values), json!({ "amount": 7, "reason": "delay", "until": null }));
    assert!(read(json!({ "amount": "7", "until": null })).is_ok());
    let faults = read(json!({ "resaon": "damage", "until": "soon", "x": 1 })).unwrap_err();
    let fault = |field: &str, message: &str| FieldFault { field: field.to_owned(), message: message.to_owned() };
    assert_eq!(
        faults,
        [
            fault("amount", "it is required"),
            fault("until", "\"soon\" is no date; year, month and day: 2026-02-28"),
            fault("resaon", "the form has no such field; did you mean `reason`?"),
            fault("x", "the form has no such field"),
        ]
    );
    assert_eq!(fields[0].read_typed(""), Err("it is required".to_owned()));
    assert_eq!(fields[2].read_typed(""), Ok(Value::Null));
    assert!(read(json!({ "amount": 7, "reason": "", "until": "" })).is_ok());
    let why = fields[1].read(Some(&json!("[hidden]"))).unwrap_err();
    assert_eq!(why, "[hidden] is no value: leave the field out, and it has its default");
}

/// The published schema takes what the reader takes of values in their own type, and refuses what that refuses.
#[test]
fn the_schema_of_the_answer_agrees_with_the_reader() {
    let mut fields: Vec<AskedField> = ["text", "long_text", "integer", "number", "date", "time", "choice", "yes_no"]
        .iter()
        .map(|kind| AskedField { name: (*kind).to_owned(), required: false, ..of_type(kind) })
        .collect();
    for bounded in &mut fields {
        if matches!(bounded.name.as_str(), "integer" | "number") {
            (bounded.min, bounded.max) = (Some(json!(0)), Some(json!(100)));
        }
    }
    let schema = Schema::compile(answer_schema(&fields)).unwrap();
    let values = [
        "7",
        "-7",
        "101",
        "7.5",
        "true",
        "\"a\"",
        "\"a\\nb\"",
        "\"a\\u2028b\"",
        "\"a\\u001bb\"",
        "7.0",
        "\"delay\"",
        "\"2024-02-29\"",
        "\"09:30\"",
        "[]",
        "{}",
        "\"\"",
    ];
    for field in &fields {
        for value in values {
            let value = number(value);
            let is_own =
                value.is_string() == matches!(field.name.as_str(), "text" | "long_text" | "date" | "time" | "choice");
            let given: Map<String, Value> = [(field.name.clone(), value.clone())].into_iter().collect();
            let takes = read_answer(&fields, &given).is_ok();
            // An empty text is a field that is left out, which the schema need not take.
            let is_left_out = value == "" && !matches!(field.name.as_str(), "text" | "long_text");
            // The format of a date is a note of the schema.
            if !is_own || is_left_out || (field.name == "date" && !takes) {
                continue;
            }
            let faults = schema.faults(&Value::Object(given));
            assert_eq!(faults.is_empty(), takes, "{} {value}: {faults:?}", field.name);
        }
    }
}

#[test]
fn bounds_and_defaults_that_are_written_out_are_judged() {
    let faults = |written: Value| {
        let field: FormField = serde_json::from_value(written).unwrap();
        literal_faults(&field)
            .into_iter()
            .map(|fault| format!("{}: {}", fault.field, fault.message))
            .collect::<Vec<_>>()
    };
    let none: [String; 0] = [];
    assert_eq!(faults(json!({ "name": "a", "type": "number", "min": 0, "max": "@claim.amount", "default": 5 })), none);
    assert_eq!(faults(json!({ "name": "a", "type": "date", "min": "2026-01-01T10:00:00Z" })), none);
    assert_eq!(
        faults(json!({ "name": "a", "type": "number", "min": "ten" })),
        ["min: \"ten\" is no number; digits with a point: 12.50"]
    );
    assert_eq!(faults(json!({ "name": "a", "type": "text", "min": 3 })), none);
    assert_eq!(faults(json!({ "name": "a", "type": "date", "default": "2026-01-01T10:00:00Z" })), none);
    assert_eq!(
        faults(json!({ "name": "a", "type": "integer", "min": 5, "max": 1 })),
        ["max: its `min` 5 is above its `max` 1"]
    );
    assert_eq!(
        faults(json!({ "name": "a", "type": "choice", "choices": ["x"], "default": "y" })),
        ["default: its `default` is not taken: \"y\" is none of the choices: x"]
    );
}

#[test]
fn today_is_the_day_in_the_time_zone_and_another_moment_has_its_date_as_it_is_written() {
    let form: Form = serde_json::from_value(json!({ "question": "When?", "fields": [
        { "name": "day", "type": "date", "min": "@now", "default": "@now" },
        { "name": "other", "type": "date", "min": "@input.at" }] }))
    .unwrap();
    let Some(FormAsks::Fields(form)) = FormAsks::of(&form) else { panic!("it has fields") };
    let input = json!({ "at": "2026-07-01T23:30:00-05:00" });
    let scope = Scope {
        arguments: &json!({ "input": input }),
        now: "2026-11-29T23:40:00.000Z",
        run_id: "RUN",
        ..Scope::of_input(&input, JsonRule::Plain.into())
    };
    let (auckland, denver) = (zone("Pacific/Auckland").unwrap(), zone("America/Denver").unwrap());
    for (zone, today) in [(None, "2026-11-29"), (Some(&auckland), "2026-11-30"), (Some(&denver), "2026-11-29")] {
        let asked = form.asked(&scope, zone).unwrap_or_else(|_| panic!("it can be asked"));
        let [day, other] = asked.fields.as_slice() else { panic!("two fields") };
        assert_eq!((&day.min, &day.default), (&Some(json!(today)), &Some(json!(today))));
        assert_eq!(other.min, Some(json!("2026-07-01")));
    }
}
