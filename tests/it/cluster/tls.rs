//! TLS to a real server, with a certificate authority of its own: who is not who the address says is refused.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::common::{Place, complete, observed, think};
use crate::serve::client;
use crate::test_server;

/// Makes two authorities, and a certificate of the first for `localhost`; starts a server with it, prints its folder, and
/// stops it when nothing can come from the test any more. `$1` is the folder of the programs, `$2` the port.
const SCRIPT: &str = r#"
set -eu
folder=$(mktemp -d)
chmod 755 "$folder"
trap 'kill -INT $server 2>/dev/null; wait $server 2>/dev/null; rm -rf "$folder"' EXIT
cd "$folder"
exec 3>&1 >log 2>&1
key="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
for name in ca other; do openssl req -x509 $key -keyout $name.key -out $name.pem -subj "/CN=$name" -days 2; done
openssl req $key -keyout server.key -out server.csr -subj /CN=localhost
echo "subjectAltName=DNS:localhost" >names
openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem -days 2 -extfile names
"$1/initdb" -D data -U loopctl -A trust --no-sync -E UTF8 --locale=C
printf '%s\n' "ssl = on" "ssl_cert_file = '$folder/server.pem'" "ssl_key_file = '$folder/server.key'" \
  "listen_addresses = '127.0.0.1'" "port = $2" "unix_socket_directories = '$folder'" >>data/postgresql.conf
"$1/postgres" -D data &
server=$!
until "$1/pg_isready" -q -h "$folder" -p "$2" -U loopctl -d postgres; do kill -0 $server; sleep 0.05; done
echo "$folder" >&3
read -r line || true
sed -i 's/^ssl = on/ssl = off/' data/postgresql.conf
kill -HUP $server
until [ "$("$1/psql" -XAt -h "$folder" -p "$2" -U loopctl -d postgres -c 'SHOW ssl')" = off ]; do sleep 0.05; done
echo off >&3
read -r line || true
"#;

/// A server with a certificate.
struct TlsServer {
    folder: String,
    port: u16,
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl TlsServer {
    /// Starts it; none on a machine without PostgreSQL or openssl.
    fn start(test: &str) -> Option<Self> {
        test_server::server(test)?;
        let has_openssl = Command::new("openssl").arg("version").output().is_ok_and(|output| output.status.success());
        if !has_openssl {
            use std::io::Write as _;
            #[allow(clippy::explicit_write, reason = "the line is to be seen when the test passes, too")]
            writeln!(std::io::stderr(), "skipped: {test}: there is no openssl on this machine").unwrap();
            return None;
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = test_server::as_server_user("sh");
        command.args(["-c", SCRIPT, "sh", &test_server::programs()?, &port.to_string()]);
        let mut child = command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut server = Self { folder: String::new(), port, child, output };
        server.folder = server.line();
        assert!(!server.folder.is_empty(), "the server does not start");
        Some(server)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// From now on the server speaks no TLS.
    fn become_plain(&mut self) {
        use std::io::Write as _;
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        assert_eq!(self.line(), "off");
    }

    /// The address of the server under this name, with the certificates of this authority.
    fn url(&self, host: &str, authority: &str) -> String {
        let Self { folder, port, .. } = self;
        format!("postgres://loopctl@{host}:{port}/postgres?sslmode=verify-full&sslrootcert={folder}/{authority}.pem")
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        drop(self.child.wait());
    }
}

fn refused(place: &Place, url: &str, what_to_do: &str) {
    let ran = place.call(&["store", "check", "--store", url]);
    assert_eq!((ran.code, ran.stderr.lines().count()), (2, 1), "{ran:?}");
    assert!(ran.stderr.contains(what_to_do), "{ran:?}");
}

/// What a tool reads that asks the server at this address whether it speaks TLS.
fn asked(url: &str) -> Value {
    let sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let action =
        json!({ "action_name": "q", "kind": "db", "description": "Asks.", "datasource": "shop", "query": sql });
    let place = Place::new();
    place.actions(&[action], &json!({ "datasources": { "shop": { "url": url } } }));
    place.calls(&[think("q", json!({}))])[0].clone()
}

#[test]
fn only_the_server_whose_certificate_the_authority_signed_for_this_name_is_used() {
    let Some(mut server) = TlsServer::start("only_the_server_whose_certificate_the_authority_signed") else { return };
    let place = client::place(json!({}), &[complete(json!("ok"))]);
    let right = server.url("localhost", "ca");
    let ran = place.call(&["run", "loop.json", "--store", &right]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(place.call(&["store", "check", "--store", &right]).code, 0);
    let not_trusted = "name its authority with `sslrootcert`, and the host as the certificate does";
    refused(&place, &server.url("localhost", "other"), not_trusted);
    refused(&place, &server.url("127.0.0.1", "ca"), not_trusted);
    refused(&place, &server.url("localhost", "none"), "can't be read");
    assert_eq!(asked(&right)["observation"]["rows"], json!([{ "ssl": true }]));
    for wrong in [server.url("localhost", "other"), server.url("127.0.0.1", "ca")] {
        assert!(observed(&asked(&wrong)).contains("can't be opened"), "{wrong}: {:#}", asked(&wrong));
    }
    server.become_plain();
    assert!(observed(&asked(&right)).contains("can't be opened"), "{:#}", asked(&right));
    refused(&place, &right, "set `ssl = on` there");
}
