//! A real registry: Debian's `docker-registry`, on a free port of the loopback, gone with its value.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::say_skipped;

/// User and password of the registry that asks for them.
pub(crate) const USER: (&str, &str) = ("hallmark", "secret");

/// The password, as the registry keeps it (bcrypt).
const PASSWORD: &str = "$2b$04$7.YKiIDba.MIaKjM4pggruwTqOKBAScuFdeWHbuJqi/mGlKqbTQzu";

/// Killed when dropped, and when the test's process dies.
pub(crate) struct Registry {
    folder: tempfile::TempDir,
    child: Child,
    host: String,
}

/// One line of the registry's own access log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) status: u16,
}

impl Registry {
    /// `None`, and a word about it, where the program is not installed.
    pub(crate) fn start() -> Option<Self> {
        Self::with("")
    }

    /// The same; it asks for [`USER`].
    pub(crate) fn start_with_password() -> Option<Self> {
        Self::with("auth: {htpasswd: {realm: test, path: PASSWORDS}}\n")
    }

    fn with(more: &str) -> Option<Self> {
        if Command::new("docker-registry").arg("--version").output().is_err() {
            say_skipped("docker-registry is not installed");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let host = format!("127.0.0.1:{port}");
        let root = folder.path();
        let passwords = root.join("passwords");
        fs_err::write(&passwords, format!("{}:{PASSWORD}\n", USER.0)).unwrap();
        let settings = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {}}}, delete: {{enabled: true}}}}\nhttp: {{addr: {host}}}\n{}",
            root.join("data").display(),
            more.replace("PASSWORDS", &passwords.display().to_string())
        );
        fs_err::write(root.join("config.yml"), settings).unwrap();
        let log = fs_err::File::create(root.join("log")).unwrap();
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "docker-registry", "serve"])
            .arg(root.join("config.yml"))
            .stdin(Stdio::null())
            .stdout(log.into_file())
            .stderr(fs_err::File::create(root.join("errors")).unwrap().into_file())
            .spawn()
            .unwrap();
        let registry = Self { folder, child, host };
        for _ in 0..500 {
            if std::net::TcpStream::connect(&registry.host).is_ok() {
                return Some(registry);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let said = fs_err::read_to_string(registry.folder.path().join("errors")).unwrap();
        panic!("docker-registry does not come up: {said}");
    }

    /// Host and port.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// What it was asked so far.
    pub(crate) fn accesses(&self) -> Vec<Access> {
        // The log is written after the answer.
        std::thread::sleep(Duration::from_millis(100));
        accesses(&self.folder.path().join("log"))
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `127.0.0.1 - - [date] "GET /v2/ HTTP/1.1" 200 2 "" "agent"`.
fn accesses(log: &Path) -> Vec<Access> {
    let text = fs_err::read_to_string(log).unwrap();
    text.lines()
        .filter_map(|line| {
            let mut parts = line.split('"');
            let request = parts.nth(1)?;
            let status = parts.next()?.split_whitespace().next()?.parse().ok()?;
            let mut words = request.split(' ');
            let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
            Some(Access { method, target, status })
        })
        .collect()
}
