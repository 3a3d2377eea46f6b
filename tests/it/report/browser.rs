//! Headless Chromium, driven through its pipe (`--remote-debugging-pipe`): no port that others could reach, no crate.
//!
//! It reads JSON from descriptor 3 and writes JSON to descriptor 4, each message ended by a zero byte. Two named pipes and a shell
//! put them there.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::say_skipped;

/// Names under which Chromium is installed.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// How long one answer may take: the machine may be busy.
const PATIENCE: Duration = Duration::from_mins(2);

/// A browser with one page.
pub(super) struct Browser {
    child: Child,
    to: fs_err::File,
    answers: Receiver<Value>,
    session: String,
    calls: u64,
    /// What it told unasked, oldest first.
    events: Vec<Value>,
    folder: tempfile::TempDir,
}

impl Browser {
    /// Starts one; `None`, and a word about it, where there is none.
    pub(super) fn start() -> Option<Self> {
        let there = |name: &&str| {
            Command::new(name)
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
        };
        let Some(name) = NAMES.into_iter().find(there) else {
            say_skipped("no Chromium is installed (Debian's package `chromium`)");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let pipes = ["in", "out"].map(|name| folder.path().join(name));
        for pipe in &pipes {
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            rustix::fs::mknodat(rustix::fs::CWD, pipe, rustix::fs::FileType::Fifo, mode, 0)
                .unwrap();
        }
        let child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<\"$0/in\" 4>\"$0/out\""])
            .arg(folder.path())
            .args([name, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
            .args(["--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
            // What it leaves when it is killed is removed with the folder.
            .env("TMPDIR", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs_err::File::create(folder.path().join("stderr")).unwrap().into_file())
            .spawn()
            .unwrap();
        let to = fs_err::OpenOptions::new().write(true).open(&pipes[0]).unwrap();
        let mut from = BufReader::new(fs_err::File::open(&pipes[1]).unwrap());
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            loop {
                let mut message = Vec::new();
                if from.read_until(0, &mut message).unwrap_or(0) == 0 {
                    return;
                }
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else { return };
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        let session = String::new();
        let mut browser =
            Self { child, to, answers, session, calls: 0, events: Vec::new(), folder };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", &attach);
        attached["sessionId"].as_str().unwrap().clone_into(&mut browser.session);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        Some(browser)
    }

    /// Asks for something and waits for the answer.
    #[track_caller]
    pub(super) fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut bytes = serde_json::to_vec(&message).unwrap();
        bytes.push(0);
        self.to.write_all(&bytes).unwrap();
        loop {
            let answer = self.receive(method);
            if answer["id"] == json!(self.calls) {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    #[track_caller]
    fn receive(&self, what: &str) -> Value {
        self.answers.recv_timeout(PATIENCE).unwrap_or_else(|error| {
            let mut said = String::new();
            let path = self.folder.path().join("stderr");
            let _ = fs_err::File::open(path).and_then(|mut file| file.read_to_string(&mut said));
            panic!("the browser does not answer to {what}: {error}\n{said}")
        })
    }

    /// Opens a file and waits until it is loaded.
    #[track_caller]
    pub(super) fn open(&mut self, path: &Path) {
        self.events.clear();
        self.call("Page.navigate", &json!({ "url": format!("file://{}", path.display()) }));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.receive("Page.navigate");
            self.events.push(event);
        }
    }

    /// The value of an expression in the page.
    #[track_caller]
    pub(super) fn value(&mut self, expression: &str) -> Value {
        let call = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", &call);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Whether scripts of pages run from now on.
    pub(super) fn scripts(&mut self, run: bool) {
        self.call("Emulation.setScriptExecutionDisabled", &json!({ "value": !run }));
    }

    /// Light or dark, and how large the window is.
    pub(super) fn look(&mut self, scheme: &str, [width, height]: [u32; 2]) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", &json!({ "features": features }));
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
    }

    /// Presses the left button in the middle of the first element that the selector finds.
    #[track_caller]
    pub(super) fn click(&mut self, selector: &str) {
        let look = format!(
            "(() => {{ const e = document.querySelector({}); e.scrollIntoView({{ block: 'center' }}); \
             const r = e.getBoundingClientRect(), x = r.x + r.width / 2, y = r.y + r.height / 2; \
             return [x, y, e.contains(document.elementFromPoint(x, y))]; }})()",
            json!(selector)
        );
        // On a busy machine a page still moves: not before it is found twice in one place, and nothing lies over it.
        let mut place = Value::Null;
        for _ in 0..100 {
            let before = std::mem::replace(&mut place, self.value(&look));
            if before == place && place[2] == json!(true) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({ "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", &event);
        }
    }

    /// Presses a key.
    pub(super) fn key(&mut self, key: &str, code: u32, text: &str) {
        for kind in ["keyDown", "keyUp"] {
            let event = json!({ "type": kind, "key": key, "windowsVirtualKeyCode": code, "text": if kind == "keyDown" { text } else { "" } });
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// A picture of the window, or of the first element that the selector finds.
    pub(super) fn picture(&mut self, path: &Path, selector: Option<&str>) {
        let mut call = json!({ "captureBeyondViewport": true });
        if let Some(selector) = selector {
            call["clip"] = self.value(&format!(
                "(async () => {{ const e = document.querySelector({}); e.scrollIntoView(); \
                 await new Promise((then) => requestAnimationFrame(() => requestAnimationFrame(then))); \
                 const r = e.getBoundingClientRect(); \
                 return {{ x: r.x + scrollX, y: r.y + scrollY, width: r.width, height: r.height, scale: 1 }}; }})()",
                json!(selector)
            ));
        }
        let answer = self.call("Page.captureScreenshot", &call);
        let coded = path.with_extension("base64");
        fs_err::write(&coded, answer["data"].as_str().unwrap()).unwrap();
        let decoded = Command::new("base64").arg("-d").arg(&coded).output().unwrap();
        fs_err::write(path, decoded.stdout).unwrap();
        fs_err::remove_file(coded).unwrap();
    }

    /// Addresses that were asked for since the page was opened; not what the page's policy stopped.
    pub(super) fn requests(&self) -> Vec<String> {
        let of = |method: &'static str| {
            self.events.iter().filter(move |event| event["method"] == method)
        };
        let stopped: Vec<&Value> = of("Network.loadingFailed")
            .map(|event| &event["params"])
            .filter(|failure| failure["blockedReason"] == "csp")
            .map(|failure| &failure["requestId"])
            .collect();
        of("Network.requestWillBeSent")
            .map(|event| &event["params"])
            .filter(|request| !stopped.contains(&&request["requestId"]))
            .map(|request| request["request"]["url"].as_str().unwrap().to_owned())
            .collect()
    }

    /// What the page and the browser complained of since the page was opened.
    pub(super) fn complaints(&self) -> Vec<String> {
        [
            self.told("Runtime.exceptionThrown", "/params/exceptionDetails"),
            self.told("Runtime.consoleAPICalled", "/params/args"),
            self.told("Log.entryAdded", "/params/entry/text"),
        ]
        .concat()
    }

    fn told(&self, method: &str, place: &str) -> Vec<String> {
        self.events
            .iter()
            .filter(|event| event["method"] == method)
            .map(|event| {
                let told = event.pointer(place).unwrap();
                told.as_str().map_or_else(|| told.to_string(), str::to_owned)
            })
            .collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its helpers end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
