//! What an action requires of the approval of its calls: a declaration adds to it, and takes nothing away.

use serde_json::{Value, json};

use super::{compile_as, http};
use crate::diagnostic::codes;
use crate::language::approval::OnExpiry;
use crate::program::approval::{ApprovalNeed, ApprovalPolicy, CallRules};
use crate::program::condition::OrderRules;
use crate::program::json_texts::JsonRule;

fn policy(action: Value, mut declaration: Value) -> ApprovalPolicy {
    declaration["name"] = json!("t");
    compile_as(declaration, http(action)).unwrap().0.approval
}

/// What the conditions of a new run are judged by.
const RULES: CallRules<'static> = CallRules { json: JsonRule::PRESENT, order: OrderRules::PRESENT, now: "" };

#[test]
fn of_two_settings_the_stricter_one_counts_wherever_it_is() {
    let settings = |approvers: u32, after_ms: u64, on_expiry: &str| {
        json!({ "requires_approval": true,
            "approval": { "approvers": approvers, "expires_after_ms": after_ms, "on_expiry": on_expiry } })
    };
    let (strict, loose) = (settings(3, 5_000, "fail"), settings(1, 9_000, "escalate"));
    for (action, declaration) in
        [(&strict, &loose), (&loose, &strict), (&strict, &json!({})), (&json!({}), &strict), (&strict, &strict)]
    {
        let policy = policy(action.clone(), declaration.clone());
        let found = (policy.always, policy.approvers, policy.expires_after_ms, policy.on_expiry);
        assert_eq!(found, (true, 3, Some(5_000), OnExpiry::Fail), "{action} {declaration}");
    }
    // Who sets a time only means that the call is denied then.
    let time = json!({ "approval": { "expires_after_ms": 1 } });
    for (action, declaration) in [(&time, &loose), (&loose, &time)] {
        assert_eq!(policy(action.clone(), declaration.clone()).on_expiry, OnExpiry::Deny);
    }
    let none = policy(json!({}), json!({}));
    assert_eq!((none.always, none.may_ask(), none.approvers, none.expires_after_ms), (false, false, 1, None));
}

#[test]
fn a_call_is_approved_when_the_condition_of_either_says_so() {
    let over = |limit: u32| json!({ "requires_approval": { "greaterThan": ["@input.amount", limit] } });
    let under = json!({ "requires_approval": { "lessThan": ["@input.count", 1] } });
    for (action, declaration) in [(over(5), under.clone()), (under, over(5))] {
        let policy = policy(action, declaration);
        let need = |amount: Value, count: Value| policy.of_call(&json!({ "amount": amount, "count": count }), &RULES);
        assert!(policy.may_ask() && !policy.always);
        assert_eq!(need(json!(6), json!(1)), ApprovalNeed::Needed);
        assert_eq!(need(json!(5), json!(0)), ApprovalNeed::Needed);
        assert_eq!(need(json!(5), json!(1)), ApprovalNeed::NotNeeded);
        // What can't be compared never skips an approval.
        assert!(matches!(need(json!(5), json!("many")), ApprovalNeed::Unknown { why } if why.contains("count")));
        assert!(matches!(need(json!("much"), json!(1)), ApprovalNeed::Unknown { why } if why.contains("amount")));
        assert_eq!(need(json!(6), json!("many")), ApprovalNeed::Needed);
    }
    // A declaration without a condition leaves that of the action.
    for declaration in [json!({}), json!({ "requires_approval": false })] {
        assert_eq!(policy(over(5), declaration).of_call(&json!({ "amount": 6 }), &RULES), ApprovalNeed::Needed);
    }
    let always = policy(over(5), json!({ "requires_approval": true }));
    assert_eq!(always.of_call(&json!({ "amount": 1 }), &RULES), ApprovalNeed::Needed);
}

#[test]
fn a_condition_knows_the_input_of_the_call_and_nothing_else() {
    let bad = json!({ "name": "t", "requires_approval": { "matches": ["@input.amount", "("] } });
    assert_eq!(compile_as(bad, http(json!({}))).unwrap_err().len(), 1);
    for (operand, code) in [
        ("@amount", codes::UNKNOWN_VARIABLE),
        ("@secrets.key", codes::UNKNOWN_VARIABLE),
        ("{{input.amount}}", codes::BAD_OPERAND),
        ("{{amount}}", codes::BAD_OPERAND),
    ] {
        let declaration = json!({ "name": "t", "requires_approval": { "greaterThan": [operand, 5] } });
        let faults = compile_as(declaration, http(json!({}))).unwrap_err();
        assert_eq!(faults.iter().map(|fault| fault.code).collect::<Vec<_>>(), [code], "{operand}");
    }
}
