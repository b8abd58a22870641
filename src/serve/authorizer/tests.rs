//! Who is admitted, by every kind of header.

use super::*;
use crate::language::serving::Token;
use axum::http::HeaderValue;

fn gate(tokens: &[(&str, &[TokenScope], Option<&str>)]) -> Authorizer {
    let token = |(token, scopes, org): &(&str, &[TokenScope], Option<&str>)| Token {
        name: (*token).to_owned(),
        hash: hash_text(token),
        scopes: scopes.to_vec(),
        org: org.map(str::to_owned),
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
    let token = Token { name: "ci".to_owned(), hash: hash_text("t"), scopes: vec![TokenScope::Run], org: None };
    let said = |token: Token| Authorizer::new(&Serving { tokens: vec![token], ..Serving::default() }).unwrap_err();
    for wrong in [
        Token { hash: "sha256:12".to_owned(), ..token.clone() },
        Token { hash: "t".to_owned(), ..token.clone() },
        Token { hash: format!("sha256:{}", "é".repeat(32)), ..token.clone() },
        Token { scopes: Vec::new(), ..token.clone() },
        Token { org: Some("a b".to_owned()), ..token.clone() },
    ] {
        assert!(said(wrong.clone()).contains("`ci`"), "{wrong:?}");
    }
    assert!(Authorizer::new(&Serving { tokens: vec![token.clone(), token], ..Serving::default() }).is_err());
}

#[test]
fn new_tokens_differ_and_their_hash_is_what_is_let_in() {
    let (one, two) = (new_token().unwrap(), new_token().unwrap());
    assert_ne!(one, two);
    assert_eq!(one.len(), PREFIX.len() + 43);
    let gate = gate(&[(&one, &[TokenScope::Run], None)]);
    let ask = |token: &str| {
        gate.admit(&headers(&[("authorization", &format!("Bearer {token}"))]), &[TokenScope::Run]).is_ok()
    };
    assert_eq!((ask(&one), ask(&two)), (true, false));
}

#[test]
fn a_caller_does_what_its_scopes_say_and_nothing_else() {
    let caller = |scopes: &[TokenScope]| Caller { name: None, org: None, scopes: scopes.to_vec() };
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
