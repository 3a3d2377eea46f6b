//! A Docker daemon of the tests' own: its socket, data and state lie in one folder, it has no bridge and touches no
//! packet filter.
//!
//! A small shell holds it: when the pipe to that shell closes, by `drop` or since the test process died in whatever way, the
//! shell stops the daemon, waits for its end and removes the folder.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use hallmark::base::clock::Stopwatch;

use super::{installed, is_real_root, say_skipped};

/// `$1` is the folder; the rest is added to the daemon's arguments.
const KEEPER: &str = r#"
folder=$1; shift
trap : HUP INT TERM
$WRAP dockerd --host "unix://$folder/d.sock" --data-root "$folder/data" --exec-root "$folder/exec" \
    --pidfile "$folder/d.pid" --bridge=none --iptables=false "$@" </dev/null >"$folder/log" 2>&1 &
cat >/dev/null
kill -TERM $! 2>/dev/null
wait $!
# What a daemon leaves that was killed: the processes that watch its containers, the containers, and mounts.
for process in /proc/[0-9]*; do
    if tr '\0' ' ' 2>/dev/null <"$process/cmdline" | grep -qF " $folder/"; then
        kill -KILL $(cat "$process"/task/*/children 2>/dev/null) "${process#/proc/}" 2>/dev/null
    fi
done
grep -F " $folder/" /proc/self/mounts | cut -d' ' -f2 | sort -r | xargs -r umount -l
rm -rf "$folder"
"#;

/// A network of its own for a daemon: its containers have a default route, and whatever they send is swallowed.
const SWALLOW: &str = r#"
ip link set lo up
ip link add swallow type bridge
ip address add 10.213.0.1/16 dev swallow
ip link set swallow up
ip route add blackhole default
exec "$@"
"#;

/// A healthy daemon needs a second or two; a machine under load, longer.
const PATIENCE: Duration = Duration::from_mins(1);

/// Stopped and removed when dropped.
pub(crate) struct Dockerd {
    folder: PathBuf,
    keeper: Child,
}

impl Dockerd {
    /// The one of this test process. `None`, and a word about it, where the host cannot have one.
    pub(crate) fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Dockerd>> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(&[])).as_ref().or_else(|| {
            say_skipped("there is no Docker daemon: it needs root and Debian's package docker.io");
            None
        })
    }

    /// One of the test's own, for tests that maltreat it.
    pub(crate) fn start(arguments: &[&str]) -> Option<Self> {
        if !is_real_root() || !installed("dockerd") || !installed("docker") {
            return None;
        }
        Some(Self::start_in(new_folder(), arguments))
    }

    /// One whose containers have a network that swallows what they send: a connect times out, as behind a firewall. Under the others
    /// it fails at once.
    pub(crate) fn swallowing() -> Option<Self> {
        if !is_real_root() || !["dockerd", "docker", "ip"].into_iter().all(installed) {
            say_skipped(
                "there is no Docker daemon: it needs root and Debian's docker.io and iproute2",
            );
            return None;
        }
        let folder = new_folder();
        let script = folder.join("network.sh");
        fs_err::write(&script, SWALLOW).unwrap();
        let wrap = format!("unshare --net sh {}", script.display());
        Some(Self::spawn(
            folder,
            &["--bridge=swallow", "--ip-forward=false", "--ip-masq=false"],
            &wrap,
        ))
    }

    /// The same in a folder that the test made. It is removed at the end.
    pub(crate) fn start_in(folder: PathBuf, arguments: &[&str]) -> Self {
        Self::spawn(folder, arguments, "")
    }

    /// `wrap` are the words before `dockerd`.
    fn spawn(folder: PathBuf, arguments: &[&str], wrap: &str) -> Self {
        use std::os::unix::process::CommandExt as _;
        let keeper = Command::new("sh")
            .env("WRAP", wrap)
            .args(["-c", KEEPER, "keeper"])
            .arg(&folder)
            .args(arguments)
            // Ctrl-C is for the tests; the keeper sees their end.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let dockerd = Self { folder, keeper };
        let watch = Stopwatch::start();
        while !dockerd.docker(&["version"]).status.success() {
            assert!(watch.elapsed() < PATIENCE, "no daemon came: {}", dockerd.log());
            std::thread::sleep(Duration::from_millis(100));
        }
        dockerd
    }

    /// Its address, as `DOCKER_HOST` takes it.
    pub(crate) fn host(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join("d.sock")
    }

    /// Where its files are.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn pid(&self) -> i32 {
        fs_err::read_to_string(self.folder.join("d.pid")).unwrap().trim().parse().unwrap()
    }

    /// What it logged.
    pub(crate) fn log(&self) -> String {
        fs_err::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Docker's own client, asking this daemon.
    pub(crate) fn docker(&self, arguments: &[&str]) -> Output {
        Command::new("docker")
            .arg("--host")
            .arg(self.host())
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// The same; it must succeed. Its output, trimmed.
    pub(crate) fn ask(&self, arguments: &[&str]) -> String {
        let output = self.docker(arguments);
        assert!(output.status.success(), "docker {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

/// A socket's path may have 107 bytes: the target folder's may be longer.
fn new_folder() -> PathBuf {
    tempfile::Builder::new().prefix("hallmark-dockerd-").tempdir().unwrap().keep()
}

impl Drop for Dockerd {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}
