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
use rustix::process::Signal;

use super::{installed, is_real_root, say_skipped};

/// `$1` is the folder; the rest is added to the daemon's arguments.
const KEEPER: &str = r#"
folder=$1; shift
trap : HUP INT TERM
$WRAP dockerd --host "unix://$folder/d.sock" --data-root "$folder/data" --exec-root "$folder/exec" \
    --pidfile "$folder/d.pid" --bridge=none --iptables=false "$@" </dev/null >"$folder/log" 2>&1 &
cat >/dev/null
kill -TERM $! 2>/dev/null
# A test may have failed while it stood still.
kill -CONT $! 2>/dev/null
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
        let shared = SHARED.get_or_init(|| can_start().then(|| Self::start_in(new_folder(), &[])));
        shared.as_ref().or_else(skipped)
    }

    /// One of the test's own, for tests that maltreat it.
    pub(crate) fn start(arguments: &[&str]) -> Option<Self> {
        if !can_start() {
            return skipped();
        }
        Some(Self::start_in(new_folder(), arguments))
    }

    /// One whose images and containers are in a memory disk of `size`, as tmpfs(5) writes it.
    pub(crate) fn on_small_disk(size: &str) -> Option<Self> {
        if !can_start() {
            return skipped();
        }
        let folder = new_folder();
        let data = folder.join("data");
        fs_err::create_dir(&data).unwrap();
        let options = format!("size={size}");
        let mount = ["-t", "tmpfs", "-o", &options, "tmpfs"];
        assert!(Command::new("mount").args(mount).arg(data).status().unwrap().success());
        Some(Self::start_in(folder, &[]))
    }

    /// One whose containers have a network that swallows what they send: a connect times out, as behind a firewall. Under the others
    /// it fails at once.
    pub(crate) fn swallowing() -> Option<Self> {
        if !can_start() || !installed("ip") {
            return skipped();
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

    /// Lets it stand still, and returns once it does.
    pub(crate) fn freeze(&self) {
        self.signal(Signal::STOP);
        let tasks = format!("/proc/{}/task", self.pid());
        let stands = |task: std::io::Result<fs_err::DirEntry>| {
            let stat = fs_err::read_to_string(task.unwrap().path().join("stat"));
            stat.is_ok_and(|stat| stat.rsplit(") ").next().unwrap().starts_with('T'))
        };
        while !fs_err::read_dir(&tasks).unwrap().all(stands) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
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

fn can_start() -> bool {
    is_real_root() && ["dockerd", "docker"].into_iter().all(installed)
}

/// None, and a word about it.
fn skipped<T>() -> Option<T> {
    say_skipped("there is no Docker daemon: it needs root and Debian's docker.io and iproute2");
    None
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
