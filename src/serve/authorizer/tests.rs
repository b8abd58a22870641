//! Who is admitted, and for what.

use super::*;
use crate::language::serving::Token;
use axum::http::HeaderValue;

fn gate(tokens: &[(&str, &[TokenScope], Option<&str>)]) -> Authorizer {
    let token = |(token, scopes, org): &(&str, &[TokenScope], Option<&str>)| Token {
        name: (*token).to_owned(),
        hash: hash_text(token),
        scopes: scopes.to_vec(),
        org: org.map(str::to_owned),
        expires_at: None,
    };
    Authorizer::new(&Serving { tokens: tokens.iter().map(token).collect(), ..Serving::default() }).unwrap()
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

#[test]
fn a_token_gives_its_scopes_and_its_organisation() {
    let gate =
        gate(&[("one", &[TokenScope::Read], Some("acme")), ("two", &[TokenScope::Run, TokenScope::Decide], None)]);
    let ask = |pairs: &[(&'static str, &str)], scope| {
        gate.admit(&headers(pairs), &[scope]).map(|caller| caller.org).map_err(|problem| problem.status.as_u16())
    };
    let acme = Some("acme".to_owned());
    assert_eq!(ask(&[("authorization", "Bearer one")], TokenScope::Read), Ok(acme.clone()));
    assert_eq!(ask(&[("authorization", "bearer one"), ("x-org-id", "acme")], TokenScope::Read), Ok(acme));
    assert_eq!(ask(&[("authorization", "Bearer two")], TokenScope::Run), Ok(None));
    assert_eq!(ask(&[("authorization", "Bearer one")], TokenScope::Run), Err(403));
    assert_eq!(ask(&[("authorization", "Bearer two")], TokenScope::Read), Err(403));
    assert_eq!(ask(&[("authorization", "Bearer one"), ("x-org-id", "other")], TokenScope::Read), Err(403));
    assert_eq!(ask(&[("authorization", "Bearer two"), ("x-org-id", "acme")], TokenScope::Run), Err(403));
    for wrong in ["", "Bearer", "Bearer ", "Bearer on", "Bearer onee", "Bearer one, Bearer two", "Basic one", "one"] {
        assert_eq!(ask(&[("authorization", wrong)], TokenScope::Read), Err(401), "{wrong:?}");
    }
    assert_eq!(ask(&[], TokenScope::Read), Err(401));
    let twice = [("authorization", "Bearer one"), ("authorization", "Bearer one")];
    assert_eq!(ask(&twice, TokenScope::Read), Err(401));
    let long = format!("Bearer {}", "x".repeat(MAX_TOKEN_BYTES + 1));
    assert_eq!(ask(&[("authorization", &long)], TokenScope::Read), Err(401));
    assert_eq!(ask(&[("authorization", "Bearer one"), ("x-org-id", "a b")], TokenScope::Read), Err(400));
}

#[test]
fn without_tokens_only_this_machine_is_listened_on() {
    let open = gate(&[]);
    let closed = gate(&[("one", &[TokenScope::Read], None)]);
    for (address, loopback) in
        [("127.0.0.1", true), ("::1", true), ("0.0.0.0", false), ("::", false), ("10.0.0.1", false)]
    {
        let address = address.parse().unwrap();
        assert_eq!((open.may_listen(address), closed.may_listen(address)), (loopback, true), "{address}");
    }
}

#[test]
fn a_token_that_can_t_be_used_is_named() {
    let token = Token {
        name: "ci".to_owned(),
        hash: hash_text("t"),
        scopes: vec![TokenScope::Run],
        org: None,
        expires_at: None,
    };
    let said = |token: Token| Authorizer::new(&Serving { tokens: vec![token], ..Serving::default() }).unwrap_err();
    for wrong in [
        Token { hash: "sha256:12".to_owned(), ..token.clone() },
        Token { hash: "t".to_owned(), ..token.clone() },
        Token { hash: format!("sha256:{}", "é".repeat(32)), ..token.clone() },
        Token { scopes: Vec::new(), ..token.clone() },
        Token { org: Some("a b".to_owned()), ..token.clone() },
        Token { org: Some("*a".to_owned()), ..token.clone() },
        Token { scopes: vec![TokenScope::Admin], org: Some("acme".to_owned()), ..token.clone() },
        Token { expires_at: Some("tomorrow".to_owned()), ..token.clone() },
        Token { expires_at: Some("2027-01-31T12:00:00".to_owned()), ..token.clone() },
    ] {
        assert!(said(wrong.clone()).contains("`ci`"), "{wrong:?}");
    }
    assert!(Authorizer::new(&Serving { tokens: vec![token.clone(), token], ..Serving::default() }).is_err());
}

#[test]
fn new_tokens_differ_and_their_hash_is_what_is_let_in() {
    let (one, two) = (new_token().unwrap(), new_token().unwrap());
    assert_ne!(one, two);
    assert_eq!(one.len(), TOKEN_PREFIX.len() + 43);
    let gate = gate(&[(&one, &[TokenScope::Run], None)]);
    let ask = |token: &str| {
        gate.admit(&headers(&[("authorization", &format!("Bearer {token}"))]), &[TokenScope::Run]).is_ok()
    };
    assert_eq!((ask(&one), ask(&two)), (true, false));
}

#[test]
fn a_caller_does_what_its_scopes_say_and_nothing_else() {
    let caller = |scopes: &[TokenScope]| Caller {
        name: None,
        org: None,
        reach: OrgReach::Own,
        scopes: scopes.to_vec(),
        hash: None,
    };
    let of_loop = |name: &str| TokenScope::DecideLoop(name.to_owned());
    let (ordinary, escalated) = (Some(DecisionRights::Ordinary), Some(DecisionRights::Escalated));
    for (scopes, rights, resumes) in [
        (vec![TokenScope::Run, TokenScope::Compose, TokenScope::Read], None, false),
        (vec![TokenScope::Decide], ordinary, true),
        (vec![of_loop("pay")], ordinary, true),
        (vec![of_loop("other")], None, false),
        (vec![TokenScope::DecideEscalated], escalated, false),
        (vec![of_loop("other"), TokenScope::DecideEscalated], escalated, false),
        (vec![of_loop("pay"), TokenScope::DecideEscalated], Some(DecisionRights::All), true),
    ] {
        let caller = caller(&scopes);
        assert_eq!((caller.rights("pay").ok(), caller.may_resume("pay").is_ok()), (rights, resumes), "{scopes:?}");
        for scope in TokenScope::ALL {
            assert_eq!(caller.require(scope.clone()).is_ok(), scopes.contains(&scope), "{scopes:?} {scope:?}");
        }
    }
}

#[test]
fn a_scope_for_one_loop_starts_and_cancels_that_one_only() {
    let caller =
        |scope: TokenScope| Caller { name: None, org: None, reach: OrgReach::Own, scopes: vec![scope], hash: None };
    let of_loop = || TokenScope::RunLoop("pay".to_owned());
    for (scope, runs, cancels, cancels_other) in [
        (TokenScope::Run, true, true, true),
        (of_loop(), true, true, false),
        (TokenScope::RunLoop("other".to_owned()), false, false, true),
        (TokenScope::Compose, false, true, true),
        (TokenScope::Cancel, false, true, true),
        (TokenScope::Admin, false, true, true),
        (TokenScope::Read, false, false, false),
        (TokenScope::Decide, false, false, false),
        (TokenScope::DecideLoop("pay".to_owned()), false, false, false),
    ] {
        let caller = caller(scope.clone());
        let may = |allowed: Result<(), ProblemDetails>| allowed.is_ok();
        assert_eq!(may(caller.may_run("pay")), runs, "{scope:?}");
        assert_eq!((may(caller.may_cancel("pay")), may(caller.may_cancel("other"))), (cancels, cancels_other));
    }
    assert!(caller(of_loop()).needs_one(&[TokenScope::Run]).is_ok());
    assert!(caller(of_loop()).needs_one(&[TokenScope::Read]).is_err());
    assert!(caller(TokenScope::Admin).needs_one(&[TokenScope::Read]).is_ok());
    for other in [TokenScope::Run, TokenScope::Compose, TokenScope::Decide] {
        assert!(caller(TokenScope::Admin).needs_one(&[other]).is_err());
    }
}

#[test]
fn a_token_for_all_organisations_sees_all_or_the_one_that_it_names() {
    for (scopes, org) in [(&[TokenScope::Admin], None), (&[TokenScope::Read], Some("*"))] {
        let gate = gate(&[("one", scopes, org)]);
        let ask = |pairs: &[(&'static str, &str)]| gate.holder_of(&headers(pairs), 0).unwrap();
        let all = ask(&[("authorization", "Bearer one")]);
        assert_eq!((all.reach, all.seen_org(), all.owner()), (OrgReach::All, None, String::new()));
        let chosen = ask(&[("authorization", "Bearer one"), ("x-org-id", "acme")]);
        assert_eq!((chosen.reach, chosen.seen_org()), (OrgReach::Chosen, Some("acme".to_owned())));
        // No caller makes accounts by naming organisations.
        assert_eq!(Owner::from(&chosen), Owner::from(&all));
    }
    let none = gate(&[("one", &[TokenScope::Read], None)]).holder_of(&headers(&[("authorization", "Bearer one")]), 0);
    assert_eq!(none.unwrap().seen_org(), Some(String::new()));
}

#[test]
fn a_token_is_refused_from_its_end_on_and_another_of_its_name_is_not() {
    let token = |text: &str, expires_at: Option<&str>| Token {
        name: "ci".to_owned(),
        hash: hash_text(text),
        scopes: vec![TokenScope::Run],
        org: None,
        expires_at: expires_at.map(str::to_owned),
    };
    let end_ms = 1_769_860_800_000;
    let tokens = vec![token("old", Some("2026-01-31T13:00:00+01:00")), token("new", None)];
    let gate = Authorizer::new(&Serving { tokens, ..Serving::default() }).unwrap();
    let ask = |token: &str, now_ms| {
        let asked = gate.holder_of(&headers(&[("authorization", &format!("Bearer {token}"))]), now_ms);
        asked.map(|caller| caller.name).map_err(|refused| {
            assert_eq!(refused.holder.unwrap().name.as_deref(), Some("ci"), "the log says whose it is");
            (refused.problem.status.as_u16(), refused.problem.code, refused.problem.detail)
        })
    };
    let known = Ok(Some("ci".to_owned()));
    assert_eq!((ask("old", end_ms - 1), ask("new", end_ms - 1)), (known.clone(), known.clone()));
    let (status, code, detail) = ask("old", end_ms).unwrap_err();
    assert_eq!((status, code), (401, "token_expired"));
    assert!(detail.contains("`ci`") && detail.contains("2026-01-31T12:00:00"), "{detail}");
    assert_eq!(ask("new", end_ms), known);
    // The two are one owner.
    assert_eq!(gate.starters().len(), 1);
    assert_eq!(gate.expiring(end_ms - EXPIRY_NOTICE_MS - 1), []);
    for (now_ms, is_over) in [(end_ms - EXPIRY_NOTICE_MS, false), (end_ms, true)] {
        let expiring = ExpiringToken { name: "ci".to_owned(), expires_at_ms: end_ms, is_over };
        assert_eq!(gate.expiring(now_ms), [expiring]);
    }
}

#[test]
fn who_was_admitted_is_refused_when_the_token_expires_or_is_not_known_any_more() {
    let token = |org: Option<&str>, scope: TokenScope, expires_at: Option<&str>| Token {
        name: "ci".to_owned(),
        hash: hash_text("t"),
        scopes: vec![scope],
        org: org.map(str::to_owned),
        expires_at: expires_at.map(str::to_owned),
    };
    let gate = |tokens: Vec<Token>| Authorizer::new(&Serving { tokens, ..Serving::default() }).unwrap();
    let soon = "1970-01-01T00:00:01Z";
    let (own, all) = (token(Some("acme"), TokenScope::Read, Some(soon)), token(Some("*"), TokenScope::Read, None));
    let shown = headers(&[("authorization", "Bearer t")]);
    let chosen = headers(&[("authorization", "Bearer t"), ("x-org-id", "acme")]);
    let again = |first: &Token, shown: &HeaderMap, then: Vec<Token>, now_ms: i64| {
        let caller = gate(vec![first.clone()]).holder_of(shown, 0).unwrap();
        gate(then).check_again(&caller, &[TokenScope::Read], now_ms).map(drop).map_err(|problem| problem.code)
    };
    assert_eq!(again(&own, &shown, vec![own.clone()], 999), Ok(()));
    assert_eq!(again(&own, &shown, vec![own.clone()], 1_000), Err("token_expired"));
    assert_eq!(again(&own, &shown, Vec::new(), 0), Err("unauthorized"));
    assert_eq!(again(&own, &shown, vec![token(Some("other"), TokenScope::Read, None)], 0), Err("unauthorized"));
    assert_eq!(again(&own, &shown, vec![token(Some("acme"), TokenScope::Run, None)], 0), Err("forbidden"));
    assert_eq!(again(&all, &shown, vec![all.clone()], 0), Ok(()));
    assert_eq!(again(&all, &chosen, vec![all.clone()], 0), Ok(()));
    assert_eq!(again(&all, &chosen, vec![own.clone()], 0), Ok(()), "it still sees what it asked for");
    assert_eq!(again(&all, &shown, vec![own.clone()], 0), Err("unauthorized"));
    let open = gate(Vec::new()).holder_of(&headers(&[]), 0).unwrap();
    assert!(gate(Vec::new()).check_again(&open, &[TokenScope::Read], 0).is_ok());
    assert_eq!(gate(vec![own]).check_again(&open, &[TokenScope::Read], 0).unwrap_err().code, "unauthorized");
}

#[test]
fn what_a_name_may_decide_is_what_its_tokens_may_that_are_left() {
    let token = |text: &str, org: Option<&str>, scope: &str, expires_at: Option<&str>| Token {
        name: "ci".to_owned(),
        hash: hash_text(text),
        scopes: vec![TokenScope::read(scope)],
        org: org.map(str::to_owned),
        expires_at: expires_at.map(str::to_owned),
    };
    let tokens = vec![
        token("a", Some("acme"), "decide", Some("1970-01-01T00:00:01Z")),
        token("b", Some("acme"), "decide:escalated", Some("1970-01-01T00:00:02Z")),
        token("c", Some("acme"), "run", None),
        token("d", Some("other"), "decide:pay", None),
    ];
    let gate = Authorizer::new(&Serving { tokens, ..Serving::default() }).unwrap();
    let of = |org: &str, name: &str, loop_name: &str, now_ms: i64| {
        let owner = Owner { org: Some(org.to_owned()), token: Some(name.to_owned()) };
        gate.rights_of(&owner, loop_name, now_ms).map(|held| (held.rights, held.until_ms))
    };
    assert_eq!(of("acme", "ci", "pay", 0), Some((DecisionRights::All, Some(2_000))));
    assert_eq!(of("acme", "ci", "pay", 1_000), Some((DecisionRights::Escalated, Some(2_000))));
    assert_eq!(of("acme", "ci", "pay", 2_000), None);
    assert_eq!(of("acme", "cd", "pay", 0), None);
    assert_eq!(of("other", "ci", "pay", 5_000), Some((DecisionRights::Ordinary, None)));
    assert_eq!(of("other", "ci", "ask", 0), None);
}

#[test]
fn everybody_is_admitted_without_tokens_and_names_an_organisation() {
    let ask = |pairs: &[(&'static str, &str)]| gate(&[]).admit(&headers(pairs), &[TokenScope::Read]);
    let admitted = ask(&[("x-org-id", "acme")]).unwrap();
    assert_eq!((admitted.name.clone(), admitted.owner()), (None, "acme".to_owned()));
    assert_eq!(ask(&[]).unwrap().owner(), "");
    assert_eq!(ask(&[("x-org-id", "a/b")]).unwrap_err().status.as_u16(), 400);
}

#[test]
fn a_hash_of_another_length_is_none() {
    let digits = "0".repeat(64);
    assert_eq!(hash_of(&digits), Some([0; 32]));
    for other in [&digits[..62], &format!("{digits}00"), &format!("{}\u{e9}", &digits[..62]), &digits.replace('0', "g")]
    {
        assert_eq!(hash_of(other), None, "{other}");
    }
    assert!(bearer(&format!("Bearer {}", "x".repeat(MAX_TOKEN_BYTES))).is_some());
}

#[test]
fn a_bearer_token_is_the_one_of_one_header_and_each_new_one_says_what_it_is_for() {
    assert_eq!(bearer_token(&headers(&[])), Ok(None));
    assert_eq!(bearer_token(&headers(&[("authorization", "Bearer abc")])), Ok(Some("abc")));
    assert_eq!(bearer_token(&headers(&[("authorization", "Basic abc")])), Err(NoBearer));
    let twice = [("authorization", "Bearer abc"), ("authorization", "Bearer abc")];
    assert_eq!(bearer_token(&headers(&twice)), Err(NoBearer));
    let new = new_answer_token().unwrap();
    assert!(new.starts_with(ANSWER_PREFIX) && new.len() == ANSWER_PREFIX.len() + 43, "{}", new.len());
    assert_ne!(new, new_answer_token().unwrap());
}

#[test]
fn shares_are_made_for_those_who_may_start_runs_and_for_each_organisation() {
    let gate = gate(&[
        ("one", &[TokenScope::Read, TokenScope::Run], Some("acme")),
        ("two", &[TokenScope::Compose], None),
        ("three", &[TokenScope::Read, TokenScope::Decide], None),
        ("four", &[TokenScope::Read], Some("other")),
    ]);
    let starters: Vec<_> = gate.starters().into_iter().map(|owner| (owner.org, owner.token)).collect();
    let named = |text: &str| Some(text.to_owned());
    assert_eq!(starters, [(named("acme"), named("one")), (None, named("two"))]);
    assert_eq!(gate.orgs(), 3);
}

#[test]
fn what_is_about_all_organisations_needs_a_scope_for_that_once_tokens_have_organisations() {
    let token = |text: &str, org: Option<&str>, scope: TokenScope| Token {
        name: text.to_owned(),
        hash: hash_text(text),
        scopes: vec![scope],
        org: org.map(str::to_owned),
        expires_at: None,
    };
    let all = [
        token("none", None, TokenScope::Read),
        token("scraper", None, TokenScope::Metrics),
        token("ops", None, TokenScope::Admin),
        token("auditor", Some("*"), TokenScope::Read),
        token("starter", Some("*"), TokenScope::Run),
        token("acme", Some("acme"), TokenScope::Read),
    ];
    let may = |tokens: &[Token], text: &str, org: Option<&str>| {
        let gate = Authorizer::new(&Serving { tokens: tokens.to_vec(), ..Serving::default() }).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("authorization", format!("Bearer {text}").parse().unwrap());
        org.into_iter().for_each(|org| drop(headers.insert("x-org-id", org.parse().unwrap())));
        let caller = gate.holder_of(&headers, 0).unwrap();
        gate.may_see_all(&caller).is_ok()
    };
    for (text, expected) in
        [("none", false), ("scraper", true), ("ops", true), ("auditor", true), ("starter", false), ("acme", false)]
    {
        assert_eq!(may(&all, text, None), expected, "{text}");
    }
    assert!(may(&all[..4], "none", None), "there is one organisation");
    assert!(!may(&all, "auditor", Some("acme")) && !may(&all, "ops", Some("acme")), "they act for one organisation");
    let open = Authorizer::new(&Serving::default()).unwrap();
    assert!(open.may_see_all(&open.holder_of(&HeaderMap::new(), 0).unwrap()).is_ok());
}
