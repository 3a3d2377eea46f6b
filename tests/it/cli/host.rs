//! What the host lacks: room, rights, user namespaces, a network. Mounts and limits are made in namespaces of their own, so
//! nothing of the host is changed.

use std::process::Command;

use hallmark::base::Store;
use hallmark::cli::exit;

use super::context::{Answer, TestContext, snapshot};
use crate::support::{Full, say_skipped};

/// Runs a shell script in new namespaces with hallmark's environment; `$HALLMARK` is the binary.
fn unshared(context: &TestContext, namespaces: &[&str], script: &str) -> Option<Answer> {
    if !rustix::process::geteuid().is_root() {
        say_skipped("needs root");
        return None;
    }
    let own = context.command([""; 0]);
    let mut command = Command::new("unshare");
    command.args(namespaces).args(["sh", "-ec", script]).env_clear();
    for (name, value) in own.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command.env("HALLMARK", env!("CARGO_BIN_EXE_hallmark")).env("DIR", context.path());
    let output = command.current_dir(context.project()).output().unwrap();
    Some(Answer::of(&output, context.path()))
}

/// Marks what a script found left over.
const REST: &str = "rest: ";

#[test]
fn offline_with_an_empty_store_every_missing_file_is_named() {
    let context = TestContext::quickstart();
    for verb in [&["bundle", "fetch"][..], &["build", "--locked"], &["run", "--locked"]] {
        let answer = context.run(TestContext::both(verb).into_iter().chain(["--offline"]));
        answer.expect(
            exit::FETCH_FAILED,
            &[
                "pyflakes-3.1.0.tar.gz",
                "pytest-",
                "python3",
                ".deb",
                "hallmark is offline",
                "hint: ",
            ],
        );
    }
    let blobs: Vec<String> = context.listing("store/blobs");
    assert_eq!(blobs, Vec::<String>::new());
    assert!(!context.project().join("quickstart.manifest.json").exists());
}

#[test]
fn a_store_that_cannot_be_written_is_named() {
    let context = TestContext::quickstart();
    let script = "mkdir -p $DIR/mount && mount -t tmpfs -o ro tmpfs $DIR/mount; \
                  set +e; $HALLMARK build quickstart --offline --store $DIR/mount/store; code=$?; \
                  $HALLMARK doctor --store $DIR/mount/store; [ $? = $code ] || exit 99; \
                  $HALLMARK build quickstart --offline --scratch $DIR/mount/scratch; [ $? = $code ] || exit 99; \
                  exit $code";
    let Some(answer) = unshared(&context, &["--mount"], script) else { return };
    answer.expect(exit::HOST, &["[DIR]/mount/store", "[DIR]/mount/scratch", "hint: "]);
}

#[test]
fn full_store_and_a_full_disk_while_a_bundle_is_unpacked() {
    let Some(full) = Full::get() else { return };
    let context = TestContext::quickstart();
    let script = format!(
        "mkdir -p $DIR/store && mount -t tmpfs -o size=48m tmpfs $DIR/store; set +e; \
         $HALLMARK bundle unpack {}; code=$?; cd $DIR/store; \
         for file in blobs/sha256/*; do [ $(sha256sum < $file | cut -c-64) = $(basename $file) ] || echo {REST}$file; done; \
         find . -name '.tmp*' | sed 's/^/{REST}/'; exit $code",
        full.bundle().display()
    );
    let Some(answer) = unshared(&context, &["--mount"], &script) else { return };
    answer.expect(exit::HOST, &["is full", "hint: ", "--store"]);
    assert!(!answer.stdout.contains(REST), "{answer}");
}

#[test]
fn full_store_and_a_full_disk_while_a_base_is_built() {
    let Some(full) = Full::get() else { return };
    let context = TestContext::with_store(&full.store());
    for made in ["steps", "runs", "layers", "trees"] {
        fs_err::remove_dir_all(context.store().join(made)).unwrap();
    }
    let script = format!(
        "mkdir -p $DIR/scratch && mount -t tmpfs -o size=64m tmpfs $DIR/scratch; set +e; \
         $HALLMARK build quickstart -i {} --locked --offline --scratch $DIR/scratch; code=$?; \
         find $DIR/scratch -mindepth 1 | sed 's/^/{REST}/'; exit $code",
        crate::support::INSTANCES[0]
    );
    let Some(answer) = unshared(&context, &["--mount"], &script) else { return };
    answer.expect(exit::HOST, &["base bookworm", "No space left on device", "--scratch"]);
    assert!(!answer.stdout.contains(REST), "{answer}");
    assert_eq!(context.listing("store/layers"), Vec::<String>::new());
    assert_eq!(context.listing("store/steps"), Vec::<String>::new());
}

#[test]
fn full_without_user_namespaces_doctor_and_every_run_say_so() {
    let Some(full) = Full::get() else { return };
    let context = TestContext::with_store(&full.store());
    fs_err::remove_dir_all(context.store().join("runs")).unwrap();
    let script = "echo 0 > /proc/sys/user/max_user_namespaces || exit 42; set +e; \
                  $HALLMARK doctor; [ $? = 6 ] || exit 99; \
                  $HALLMARK verify quickstart -i pypi__pyflakes-3.1.0 --offline";
    let namespaces = ["--user", "--map-root-user"];
    let Some(answer) = unshared(&context, &namespaces, script) else { return };
    if answer.code == Some(42) || answer.stderr.contains("unshare failed") {
        return say_skipped("user namespaces cannot be limited here");
    }
    answer.expect(
        exit::HOST,
        &["this host cannot run containers", "user.max_user_namespaces", "hint: "],
    );
    assert!(answer.stdout.contains("BROKEN  container"), "{answer}");
    // What the kernel calls it.
    assert!(!format!("{answer}").contains("No space left"), "{answer}");
    assert!(answer.stdout.contains("fix: "), "{answer}");
}

#[test]
fn a_store_of_another_user_is_a_fault_of_the_host() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    if !crate::support::is_real_root() {
        return say_skipped("it takes root to become another user");
    }
    let context = TestContext::quickstart();
    fs_err::set_permissions(context.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    Store::open(&context.store(), &context.scratch()).unwrap();
    for verb in
        [&["build", "quickstart"][..], &["load", "quickstart"], &["doctor", "--store", "../new"]]
    {
        let output = context.command(verb).uid(65534).gid(65534).output().unwrap();
        Answer::of(&output, context.path())
            .expect(exit::HOST, &["[DIR]/", "Permission denied", "hint: ", "--store"]);
    }
}

#[test]
fn settings_of_the_host_that_make_no_sense_are_named() {
    let context = TestContext::quickstart();
    let output = context
        .command(["bundle", "fetch", "quickstart"])
        .env("HALLMARK_PYPI_INDEX", "not an address")
        .output()
        .unwrap();
    let answer = Answer::of(&output, context.path());
    answer.expect(exit::BAD_INPUT, &["HALLMARK_PYPI_INDEX"]);
    snapshot("host-setting", &answer.stderr);
}
