//! The same tests again as a user: the binary takes them into its user namespace.

use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

use hallmark::runtime::{Account, EntryOrder, ExitStatus, Gap};

use super::scaffold::{LAYERS, say_skipped, scaffold, stderr, stdout};

/// `nobody`: a user without subordinate ids on every distribution.
const NOBODY: u32 = 65_534;

/// Runs some tests of this binary as a user, where hallmark would be.
fn run_as(uid: u32, arguments: &[&str]) -> std::process::Output {
    let folder = tempfile::tempdir().unwrap();
    chown(folder.path(), Some(uid), Some(uid)).unwrap();
    fs_err::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let own = fs_err::read_link("/proc/self/exe").unwrap();
    let output = Command::new("setpriv")
        .args([format!("--reuid={uid}"), format!("--regid={uid}")])
        .args(["--clear-groups", env!("CARGO_BIN_EXE_hallmark"), "@enter"])
        .arg(own)
        .args(arguments)
        .env(LAYERS, folder.path())
        .env("TMPDIR", folder.path())
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    // What the namespace's other ids own, only root can remove: tempfile does as we are root.
    drop(folder);
    output
}

/// A user with subordinate ids: from 1,000 up, so that no service's is taken.
fn user_with_ids() -> Option<u32> {
    let passwd = fs_err::read_to_string("/etc/passwd").ok()?;
    let ids = fs_err::read_to_string("/etc/subuid").ok()?;
    ids.lines().find_map(|line| {
        let name = line.split(':').next()?;
        let entry = passwd.lines().find(|entry| entry.split(':').next() == Some(name))?;
        entry.split(':').nth(2)?.parse().ok().filter(|uid| (1000..NOBODY).contains(uid))
    })
}

fn may_test() -> bool {
    let initial = fs_err::read_to_string("/proc/self/uid_map")
        .is_ok_and(|map| map.split_whitespace().eq(["0", "0", "4294967295"]));
    if !rustix::process::geteuid().is_root() || !initial {
        say_skipped("needs root outside of any user namespace");
        return false;
    }
    true
}

#[test]
fn every_guarantee_holds_for_a_user_with_subordinate_ids() {
    if !may_test() {
        return;
    }
    let Some(uid) = user_with_ids() else {
        return say_skipped("no user has subordinate ids in /etc/subuid");
    };
    let arguments = ["runtime::", "--skip", "rootless", "--test-threads=4"];
    let output = run_as(uid, &arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(
        text.contains("test runtime::conformance::embedded::the_root_has_no_way_out ... ok"),
        "{text}"
    );
}

#[test]
fn one_id_runs_things_too() {
    if !may_test() {
        return;
    }
    let arguments = ["--ignored", "--exact", "runtime::rootless::with_one_id", "--nocapture"];
    let output = run_as(NOBODY, &arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "{text}");
}

/// Not a test by itself: what [`one_id_runs_things_too`] runs as a user.
#[test]
#[ignore = "the body of a process that another test starts"]
fn with_one_id() {
    let scaffold = scaffold().unwrap();
    assert!(scaffold.runtime.gaps().contains(&Gap::SingleId));
    let mut spec = scaffold.sh(
        "id -u; touch /made && chown 33:33 /made && rm /bin/yes && stat -c %u:%g /made; exit 5",
    );
    (spec.uid, spec.gid) = (1000, 1000);
    spec.keep_upper = true;
    let mut copy = super::conditions::copy(Some(EntryOrder::Descending), Some((1000, 1000)));
    "/root".clone_into(&mut copy.path);
    spec.copies = vec![copy];
    spec.account = Some(Account { name: "tester".to_owned(), home: "/root".to_owned() });
    let log = scaffold.run(&spec);
    assert_eq!(log.status, ExitStatus::Exited(5), "{}", stderr(&log));
    assert_eq!(stdout(&log), "0\n0:0\n", "{}", stderr(&log));
    assert!(log.gaps.contains(&Gap::SingleId) && log.gaps.contains(&Gap::User), "{log:?}");
    fs_err::remove_dir_all(log.upper.unwrap()).unwrap();
}
