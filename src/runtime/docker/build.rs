//! The package's build script: compiles the program that is pid 1 in a daemon's containers (`init/`), statically, for the
//! target. It needs what a build needs anyway: rustc, and a C compiler with its static library.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where its source is, from the package's root.
const SOURCE: &str = "src/runtime/docker/init";

/// Where it finds what it shares with the embedded runtime.
const SHARED: &str = "src/runtime/shared";

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-changed={SHARED}");
    println!("cargo::rerun-if-changed=src/runtime/docker/build.rs");
    let out = PathBuf::from(variable("OUT_DIR")).join("container-init");
    if variable("CARGO_CFG_TARGET_OS") != "linux" {
        return;
    }
    compile(&out);
}

fn compile(out: &Path) {
    let mut command = Command::new(variable("RUSTC"));
    command
        .arg(Path::new(SOURCE).join("main.rs"))
        .args(["--crate-name", "container_init", "--crate-type", "bin", "--edition", "2024"])
        .args(["--target", &variable("TARGET"), "--cap-lints", "allow"])
        .args(["-C", "target-feature=+crt-static", "-C", "relocation-model=static"])
        .args(["-C", "opt-level=s", "-C", "panic=abort", "-C", "strip=symbols"])
        .args(["-C", "codegen-units=1", "-o"])
        .arg(out);
    if let Some(linker) = setting("RUSTC_LINKER") {
        command.arg("-C").arg(format!("linker={linker}"));
    }
    match command.output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => panic!(
            "the program for containers of a daemon does not compile; it needs the C library's static archive \
             (Debian: libc6-dev, Fedora: glibc-static):\n{}",
            String::from_utf8_lossy(&output.stderr)
        ),
        Err(error) => panic!("cannot start rustc: {error}"),
    }
}

fn variable(name: &str) -> String {
    setting(name).unwrap_or_else(|| panic!("cargo sets {name}"))
}

#[expect(clippy::disallowed_methods, reason = "how cargo speaks to a build script")]
fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
