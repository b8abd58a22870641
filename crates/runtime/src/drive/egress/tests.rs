//! Which addresses and hosts pass the guard.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// None of these may be reached: because of its text, or of the address that its name resolves to here.
const BLOCKED: &[&str] = &[
    // loopback, in every spelling
    "http://127.0.0.1/",
    "http://127.0.0.1:8080/",
    "http://127.1/",
    "http://127.255.255.254/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.1/",
    "http://0177.0.0.1/",
    "http://017700000001/",
    "http://127.0.0.1./",
    "http://127.0.0x0.1/",
    "http://①②⑦.⓪.⓪.①/",
    "http://127。0。0。1/",
    "http://%31%32%37.0.0.1/",
    "http://[::1]/",
    // no host at all
    "http://./",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[0:0:0:0:0:ffff:127.0.0.1]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b:1::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[2002:a00:1::]/",
    "http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",
    "http://localhost/",
    "http://LOCALHOST/",
    "http://localhost./",
    "http://a.localhost/",
    "http://a.b.LocalHost.:99/",
    // this network, and everything
    "http://0/",
    "http://0.0.0.0/",
    "http://0.1.2.3/",
    "http://[::]/",
    "http://[::ffff:0.0.0.0]/",
    // private networks and their ends
    "http://10.0.0.0/",
    "http://10.255.255.255/",
    "http://100.64.0.1/",
    "http://100.127.255.255/",
    "http://100.100.100.200/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.0.1/",
    "http://192.168.255.255/",
    "http://3232235521/",
    "http://[::ffff:192.168.0.1]/",
    "http://[fc00::1]/",
    "http://[fd00:ec2::254]/",
    "http://[fdff:ffff::1]/",
    // link-local, and metadata
    "http://169.254.169.254/latest/meta-data/",
    "http://169.254.0.1/",
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[fe80::1]/",
    "http://[febf::1]/",
    "http://[fec0::1]/",
    "http://metadata.google.internal/",
    "http://METADATA.google.internal./computeMetadata/v1/",
    "http://168.63.129.16/",
    // assigned for protocols, documents, tests
    "http://192.0.0.1/",
    "http://192.0.0.192/",
    "http://192.0.2.1/",
    "http://192.88.99.1/",
    "http://198.18.0.1/",
    "http://198.19.255.255/",
    "http://198.51.100.7/",
    "http://203.0.113.9/",
    "http://[2001:db8::1]/",
    "http://[2001:2::1]/",
    "http://[2001:10::1]/",
    "http://[3fff::1]/",
    "http://[100::1]/",
    "http://[5f00::1]/",
    "http://[::8.8.8.8]/",
    // multicast, reserved, broadcast
    "http://224.0.0.1/",
    "http://239.255.255.255/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://[ff02::1]/",
    "http://[4000::1]/",
    // other schemes, and credentials
    "ftp://8.8.8.8/",
    "file:///etc/passwd",
    "gopher://8.8.8.8/",
    "data:text/plain,x",
    "http://user@8.8.8.8/",
    "http://user:word@8.8.8.8/",
    "http://:word@8.8.8.8/",
    "https://api.example.com@127.0.0.1/",
];

/// The neighbours of what is blocked, which are public.
const ALLOWED: &[&str] = &[
    "http://8.8.8.8/",
    "https://1.1.1.1/dns-query",
    "http://9.255.255.255/",
    "http://11.0.0.0/",
    "http://100.63.255.255/",
    "http://100.128.0.0/",
    "http://126.255.255.255/",
    "http://128.0.0.0/",
    "http://168.63.129.15/",
    "http://169.253.255.255/",
    "http://169.255.0.0/",
    "http://172.15.255.255/",
    "http://172.32.0.0/",
    "http://192.0.1.1/",
    "http://192.0.3.0/",
    "http://192.88.98.1/",
    "http://192.167.255.255/",
    "http://192.169.0.0/",
    "http://198.17.255.255/",
    "http://198.20.0.0/",
    "http://198.51.99.255/",
    "http://203.0.112.255/",
    "http://203.0.114.0/",
    "http://223.255.255.255/",
    "http://134744072/",
    "http://[2001:200::1]/",
    "http://[2001:4860:4860::8888]/",
    "http://[2001:db7:ffff::1]/",
    "http://[2003::1]/",
    "http://[2606:4700::1111]/",
    "http://[3ffe::1]/",
    "http://[::ffff:8.8.8.8]/",
    "http://[64:ff9b::8.8.8.8]/",
    "https://localhost.example.com/",
    "https://notlocalhost/",
    "https://google.internal.example.com/",
];

fn open() -> Egress {
    Egress::new(&Allow::default())
}

fn hosts(hosts: &[&str]) -> Egress {
    Egress::new(&Allow { hosts: Some(hosts.iter().map(|host| (*host).to_owned()).collect()), ..Allow::default() })
}

fn passes(guard: &Egress, url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| guard.check(&url).is_ok())
}

#[test]
fn private_and_special_addresses_are_refused_in_every_spelling() {
    assert!(BLOCKED.len() >= 60, "{}", BLOCKED.len());
    let open: Vec<_> = BLOCKED.iter().filter(|url| passes(&open(), url)).collect();
    assert!(open.is_empty(), "let through: {open:#?}");
}

#[test]
fn their_public_neighbours_pass() {
    assert!(ALLOWED.len() >= 20);
    let shut: Vec<_> = ALLOWED.iter().filter(|url| !passes(&open(), url)).collect();
    assert!(shut.is_empty(), "refused: {shut:#?}");
}

#[test]
fn with_private_addresses_the_same_addresses_pass() {
    let guard = Egress::new(&Allow { private_addresses: true, ..Allow::default() });
    let passed = BLOCKED.iter().filter(|url| passes(&guard, url)).count();
    // All but the schemes, the credentials and the dot.
    assert_eq!(passed, BLOCKED.len() - 9);
}

#[test]
fn only_hosts_of_the_list_pass() {
    let guard = hosts(&["api.example.com", "*.wild.example", "ported.example:8443", "BÜCHER.example", "8.8.4.4"]);
    let pass = [
        "https://api.example.com/",
        "http://api.example.com:81/x",
        "https://API.Example.COM/",
        "https://api.example.com./",
        "https://a.wild.example/",
        "https://a.b.wild.example/",
        "https://ported.example:8443/",
        "https://bücher.example/",
        "https://xn--bcher-kva.example/",
        "http://8.8.4.4/",
        "http://134743044/",
    ];
    let refused = [
        "https://example.com/",
        "https://api.example.com.evil.test/",
        "https://api.example.com@evil.test/",
        "https://api.example.com:x@evil.test/",
        "https://evil.test/api.example.com",
        "https://evil.test/?api.example.com",
        "https://evil.test#api.example.com",
        "https://evil.test\\@api.example.com/",
        "https://xapi.example.com/",
        "https://api-example.com/",
        "https://api.example.co/",
        "https://api.example.comm/",
        "https://a.api.example.com/",
        "https://api.example.com../",
        "https://wild.example/",
        "https://xwild.example/",
        "https://.wild.example/",
        "https://wild.example.evil.test/",
        "https://ported.example/",
        "https://ported.example:8444/",
        "https://a.ported.example:8443/",
        "https://bucher.example/",
        "https://аpi.example.com/",
        "https://xn--pi-7kc.example.com/",
        "https://api。example。com.evil.test/",
        "http://8.8.8.8/",
        "http://127.0.0.1/",
        "ftp://api.example.com/",
    ];
    for url in pass {
        assert!(passes(&guard, url), "refused: {url}");
    }
    let open: Vec<_> = refused.into_iter().filter(|url| passes(&guard, url)).collect();
    assert!(open.is_empty(), "let through: {open:#?}");
}

#[test]
fn a_list_does_not_open_private_addresses() {
    let guard = hosts(&["127.0.0.1", "localhost", "10.0.0.1:80"]);
    for url in ["http://127.0.0.1/", "http://localhost/", "http://10.0.0.1/"] {
        assert!(!passes(&guard, url), "{url}");
    }
}

#[test]
fn entries_that_are_no_hosts_let_nothing_pass() {
    for entry in
        ["", "*", "*.", "https://api.example.com", "api.example.com/x", "a@api.example.com", "api.*", "h:99999"]
    {
        let guard = hosts(&[entry]);
        assert!(!passes(&guard, "https://api.example.com/"), "{entry}");
    }
    assert!(!passes(&hosts(&[]), "https://api.example.com/"), "an empty list allows nothing");
}

#[test]
fn a_refusal_names_the_host() {
    let url = Url::parse("https://evil.test/secret-path").unwrap();
    let error = hosts(&["api.example.com"]).check(&url).unwrap_err().to_string();
    assert!(error.contains("evil.test"), "{error}");
    assert!(!error.contains("secret-path"), "{error}");
}

fn looking_up(answers: Vec<Vec<IpAddr>>) -> (Egress, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let calls = Arc::clone(&count);
    let lookup: NameLookup = Arc::new(move |_| {
        let nth = calls.fetch_add(1, Ordering::SeqCst);
        let answer = answers[nth % answers.len()].clone();
        Box::pin(async move { Ok(answer) })
    });
    (Egress::with_lookup(&Allow::default(), lookup), count)
}

const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(8, 8, 8, 8));
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

#[tokio::test]
async fn of_a_mixed_answer_only_the_public_addresses_are_dialled() {
    let (guard, _) =
        looking_up(vec![vec![LOOPBACK, PUBLIC, "::1".parse().unwrap(), "::ffff:10.0.0.1".parse().unwrap()]]);
    for _ in 0..100 {
        assert_eq!(guard.addresses("twofold.example").await.unwrap(), [PUBLIC]);
    }
}

#[tokio::test]
async fn a_name_that_turns_private_is_refused_when_it_does() {
    let (guard, lookups) = looking_up(vec![vec![PUBLIC], vec![LOOPBACK]]);
    for _ in 0..100 {
        assert_eq!(guard.addresses("turning.example").await.unwrap(), [PUBLIC]);
        assert!(matches!(guard.addresses("turning.example").await, Err(EgressFault::NotAllowed(_))));
    }
    // The checked answer is the dialled one: there is no second look-up between check and dial.
    assert_eq!(lookups.load(Ordering::SeqCst), 200);
}

#[tokio::test]
async fn a_name_without_addresses_is_not_found() {
    let (guard, _) = looking_up(vec![vec![]]);
    assert!(matches!(guard.addresses("empty.example").await, Err(EgressFault::NotFound(_))));
}

#[tokio::test]
async fn local_names_are_not_even_looked_up() {
    let (guard, lookups) = looking_up(vec![vec![PUBLIC]]);
    for name in ["localhost", "x.localhost.", "Metadata.Google.Internal"] {
        assert!(matches!(guard.addresses(name).await, Err(EgressFault::NotAllowed(_))), "{name}");
    }
    assert_eq!(lookups.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_client_asks_the_guard_for_a_name_and_dials_nothing_that_it_refuses() {
    let (guard, lookups) = looking_up(vec![vec![LOOPBACK]]);
    let error = guard
        .client(0, std::time::Duration::from_secs(9))
        .unwrap()
        .get("http://turned.example:9/")
        .send()
        .await
        .unwrap_err();
    let message = format!("{error:?}");
    assert!(message.contains("allow.private_addresses"), "{message}");
    assert_eq!(lookups.load(Ordering::SeqCst), 1);
}

#[test]
fn a_guard_in_a_log_says_what_it_allows() {
    let shown = format!("{:?}", hosts(&["api.example.com"]));
    assert!(shown.contains("api.example.com") && shown.contains("private: false"), "{shown}");
}

#[tokio::test]
async fn the_systems_answer_is_what_is_judged() {
    // An address needs no look-up: no network is used.
    assert_eq!(open().addresses("8.8.8.8").await.unwrap(), [PUBLIC]);
}

/// A host may want another provider, and choose it after a client was made.
#[cfg(not(feature = "mysql"))]
#[test]
fn a_client_installs_no_provider_for_the_process() {
    let (guard, _) = looking_up(vec![vec![LOOPBACK]]);
    guard.client(0, std::time::Duration::from_secs(9)).unwrap();
    assert!(rustls::crypto::CryptoProvider::get_default().is_none());
}
