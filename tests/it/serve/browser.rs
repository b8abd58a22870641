//! A real Chromium without a window, driven over WebDriver.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use serde_json::{Value, json};

/// Where the two programs are looked for.
const PLACES: [&str; 4] = ["/usr/bin", "/usr/local/bin", "/snap/bin", "/usr/lib/chromium"];
/// How often is looked for what is to come; each look is a call of the browser, of some milliseconds.
const LOOKS: u32 = 5_000;
/// The element's id in WebDriver's answers.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

pub struct Browser {
    driver: Child,
    address: SocketAddr,
    session: String,
    _profile: tempfile::TempDir,
}

fn program(names: &[&str]) -> Option<String> {
    let at = |name: &&str| {
        PLACES.iter().map(|place| format!("{place}/{name}")).find(|path| std::path::Path::new(path).exists())
    };
    names.iter().find_map(at)
}

/// A driver that was started, and its port; none if it ended at once.
fn started(program: &str) -> Option<(Child, u16)> {
    let mut command = Command::new(program);
    let mut driver = command.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut lines = BufReader::new(driver.stdout.take().expect("a pipe")).lines();
    let port = lines.by_ref().find_map(|line| {
        let line = line.expect("it prints its port");
        line.split_once("successfully on port ")?.1.trim_end_matches('.').parse::<u16>().ok()
    });
    let Some(port) = port else {
        driver.wait().expect("it has ended");
        return None;
    };
    std::thread::spawn(move || lines.for_each(drop));
    Some((driver, port))
}

impl Browser {
    /// A browser with a window of this size; none, said so, on a machine that has none.
    pub fn open((width, height): (u32, u32), dark: bool) -> Option<Self> {
        let chromium = program(&["chromium", "chromium-browser", "google-chrome"]);
        let (Some(chromium), Some(driver)) = (chromium, program(&["chromedriver", "chromium.chromedriver"])) else {
            eprintln!(
                "SKIPPED: the page was not tried in a browser: chromium and chromedriver are not on this machine"
            );
            return None;
        };
        // It takes a free port of one kind of address, and ends when another process has the same port of the other kind.
        let (driver, port) = (0..20).find_map(|_| started(&driver)).expect("it starts");
        let profile = tempfile::tempdir().expect("a folder");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut browser = Self { driver, address, session: String::new(), _profile: profile };
        let mut args = vec![
            "--headless=new".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--disable-gpu".to_owned(),
            // It asks nobody but the server of the test.
            "--disable-quic".to_owned(),
            "--no-first-run".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--disable-sync".to_owned(),
            format!("--window-size={width},{height}"),
            format!("--user-data-dir={}", browser._profile.path().display()),
        ];
        if dark {
            args.push("--blink-settings=preferredColorScheme=0".to_owned());
        }
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": { "binary": chromium, "args": args },
            "goog:loggingPrefs": { "browser": "ALL" } } } });
        let made = browser.ask("POST", "/session", &wanted);
        browser.session = format!("/session/{}", made["sessionId"].as_str().expect("a session"));
        // A window may not be as narrow as a phone; the page in it may.
        let phone = json!({ "cmd": "Emulation.setDeviceMetricsOverride",
            "params": { "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 } });
        browser.post("/goog/cdp/execute", &phone);
        Some(browser)
    }

    fn ask(&self, method: &str, target: &str, body: &Value) -> Value {
        let body = if method == "GET" { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a deadline");
        let head = format!(
            "{method} {target} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).expect("it reads");
        let mut answer = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            answer.read_line(&mut line).expect("it answers");
            if line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().expect("a number");
            }
        }
        let mut body = vec![0; length];
        answer.read_exact(&mut body).expect("a body");
        let value: Value = serde_json::from_slice(&body).expect("JSON");
        assert!(value["value"]["error"].is_null(), "{method} {target}: {}", value["value"]["message"]);
        value["value"].clone()
    }

    fn post(&self, target: &str, body: &Value) -> Value {
        self.ask("POST", &format!("{}{target}", self.session), body)
    }

    pub fn go(&self, url: &str) {
        self.post("/url", &json!({ "url": url }));
    }

    /// Runs a script before those of each page that is opened from now on.
    pub fn before(&self, script: &str) {
        let params = json!({ "source": script });
        self.post("/goog/cdp/execute", &json!({ "cmd": "Page.addScriptToEvaluateOnNewDocument", "params": params }));
    }

    /// What a script gives, with these arguments.
    pub fn run(&self, script: &str, args: Value) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": args }))
    }

    /// Waits until a script gives something true.
    pub fn until(&self, script: &str) -> Value {
        for _ in 0..LOOKS {
            let value = self.run(script, json!([]));
            if !matches!(value, Value::Null | Value::Bool(false)) {
                return value;
            }
        }
        let page = self.run("return document.body.innerText", json!([]));
        panic!("it never came: {script}\nthe page:\n{}", page.as_str().unwrap_or_default());
    }

    /// The visible text of the page, when it holds all of these.
    pub fn shows(&self, texts: &[&str]) -> String {
        let wanted = json!(texts);
        let seen = self.until(&format!(
            "const text = document.body.innerText; return {wanted}.every((part) => text.includes(part)) && text"
        ));
        seen.as_str().expect("text").to_owned()
    }

    /// The visible text of the page, once the run in it is shown as completed and the text holds all of these.
    pub fn shows_completed(&self, texts: &[&str]) -> String {
        self.until("return document.querySelector('#end:not([hidden]) .status.completed') !== null");
        self.shows(texts)
    }

    fn find(&self, xpath: &str) -> String {
        self.until(&format!(
            "const found = document.evaluate({}, document, null, 9, null).singleNodeValue; \
             return !!found && found.checkVisibility() && !found.disabled",
            json!(xpath)
        ));
        let found = self.post("/element", &json!({ "using": "xpath", "value": xpath }));
        found[ELEMENT].as_str().expect("an element").to_owned()
    }

    /// Clicks on the button or link of this text, as a mouse does.
    pub fn click(&self, text: &str) {
        let element = self.find(&format!("//*[self::button or self::a or self::summary][normalize-space()='{text}']"));
        self.post(&format!("/element/{element}/click"), &json!({}));
    }

    /// Types into the field of this label.
    pub fn write(&self, label: &str, text: &str) {
        let element = self.find(&format!(
            "//*[@id=//label[normalize-space()='{label}']/@for] | //label[normalize-space()='{label}']/*"
        ));
        self.post(&format!("/element/{element}/value"), &json!({ "text": text }));
    }

    /// Presses keys, one after the other, where the focus is.
    pub fn keys(&self, keys: &str) {
        let pressed =
            |key: char| [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })];
        let actions: Vec<Value> = keys.chars().flat_map(pressed).collect();
        self.post("/actions", &json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": actions }] }));
    }

    /// What the browser complained about.
    pub fn complaints(&self) -> Vec<String> {
        let log = self.post("/se/log", &json!({ "type": "browser" }));
        let lines = log.as_array().expect("a log").iter();
        lines.map(|line| line["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// What axe-core finds in the page as it is: a rule and the elements of each fault. Nothing, unless `LOOPCTL_AXE` named the file
    /// `axe.min.js` of its package when the tests were built.
    pub fn violations(&self) -> Vec<String> {
        let Some(file) = option_env!("LOOPCTL_AXE") else { return Vec::new() };
        let axe = std::fs::read_to_string(file).expect("axe.min.js");
        self.run(&format!("{axe}; window.axe = axe"), json!([]));
        let found = self.post(
            "/execute/async",
            &json!({ "args": [], "script": "const done = arguments[0]; axe.run().then((all) => done(all.violations.map((one) => \
                `${one.id}: ${one.nodes.map((node) => node.target.join(' ')).join(', ')}`)), (why) => done([String(why)]))" }),
        );
        serde_json::from_value(found).expect("texts")
    }

    /// Keeps a picture in the folder that `LOOPCTL_SCREENSHOTS` named when the tests were built.
    pub fn picture(&self, name: &str) {
        let Some(folder) = option_env!("LOOPCTL_SCREENSHOTS") else { return };
        let picture = self.ask("GET", &format!("{}/screenshot", self.session), &json!({}));
        let bytes = base64::engine::general_purpose::STANDARD.decode(picture.as_str().expect("text")).expect("base64");
        std::fs::write(format!("{folder}/{name}.png"), bytes).expect("it is written");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() && !std::thread::panicking() {
            self.ask("DELETE", &self.session, &json!({}));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
