//! Wheels and zip files made by hand, and a base image to install them on.

use std::collections::BTreeMap;
use std::path::Path;

use flate2::Crc;
use hallmark::base::{Arch, Cancel, Digest, SharedReporter, Store};
use hallmark::bundle;
use hallmark::image::Image;
use hallmark::lock::{EnvLock, PythonFile, PythonPackage};
use hallmark::net::{Client, Config};
use hallmark::resolve::debian::lock_base;
use hallmark::runtime::embedded::Embedded;
use hallmark::runtime::{Network, Root, RunSpec, Runtime as _, Workbench};
use hallmark::spec::{
    BaseDefinition, Commands, Compat, Dependencies, Interpreter, Parser, RunLimits, Setup, Spec,
    Test, TestFiles,
};
use sha2::Digest as _;

/// URL-safe base64 of the SHA-256 of `bytes`, without padding, as RECORD has it.
pub(super) fn base64_url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let digest = sha2::Sha256::digest(bytes);
    let bits: Vec<bool> =
        digest.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1)).collect();
    bits.chunks(6)
        .map(|chunk| {
            let value =
                (0..6).fold(0, |value, at| value << 1 | usize::from(chunk.get(at) == Some(&true)));
            char::from(ALPHABET[value])
        })
        .collect()
}

/// A zip archive of stored files (name, contents, Unix mode), whatever their names.
pub(super) fn raw_zip(files: &[(&str, &[u8], u32)]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, contents, mode) in files {
        let mut crc = Crc::new();
        crc.update(contents);
        let size = u32::try_from(contents.len()).unwrap();
        let at = u32::try_from(out.len()).unwrap();
        let mut common = vec![20, 0, 0, 8, 0, 0, 7, 7, 0x55, 0x55];
        for word in [crc.sum(), size, size] {
            common.extend_from_slice(&word.to_le_bytes());
        }
        common.extend_from_slice(&u16::try_from(name.len()).unwrap().to_le_bytes());
        common.extend_from_slice(&[0, 0]);
        out.extend_from_slice(b"PK\x03\x04");
        out.extend_from_slice(&common);
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(contents);
        directory.extend_from_slice(b"PK\x01\x02\x14\x03");
        directory.extend_from_slice(&common);
        directory.extend_from_slice(&[0; 6]);
        directory.extend_from_slice(&(mode << 16).to_le_bytes());
        directory.extend_from_slice(&at.to_le_bytes());
        directory.extend_from_slice(name.as_bytes());
    }
    let (start, size) =
        (u32::try_from(out.len()).unwrap(), u32::try_from(directory.len()).unwrap());
    let count = u16::try_from(files.len()).unwrap().to_le_bytes();
    out.extend_from_slice(&directory);
    out.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    out.extend_from_slice(&count);
    out.extend_from_slice(&count);
    out.extend_from_slice(&size.to_le_bytes());
    out.extend_from_slice(&start.to_le_bytes());
    out.extend_from_slice(&[0, 0]);
    out
}

/// Makes wheels, good ones unless asked otherwise.
pub(super) struct WheelMaker {
    stem: String,
    files: BTreeMap<String, (Vec<u8>, u32)>,
    rows: BTreeMap<String, Option<(String, String)>>,
}

impl WheelMaker {
    pub(super) fn new(name: &str, version: &str) -> Self {
        let maker = Self {
            stem: format!("{name}-{version}"),
            files: BTreeMap::new(),
            rows: BTreeMap::new(),
        };
        let info = format!("{}.dist-info", maker.stem);
        maker
            .file(
                &format!("{info}/WHEEL"),
                "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            )
            .file(
                &format!("{info}/METADATA"),
                &format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"),
            )
    }

    pub(super) fn file(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.to_owned(), (text.as_bytes().to_vec(), 0o100_644));
        self
    }

    pub(super) fn executable(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.to_owned(), (text.as_bytes().to_vec(), 0o100_775));
        self
    }

    pub(super) fn symlink(mut self, path: &str, target: &str) -> Self {
        self.files.insert(path.to_owned(), (target.as_bytes().to_vec(), 0o120_777));
        self
    }

    /// RECORD says this of `path`.
    pub(super) fn row(mut self, path: &str, hash: &str, size: &str) -> Self {
        self.rows.insert(path.to_owned(), Some((hash.to_owned(), size.to_owned())));
        self
    }

    /// RECORD says nothing of `path`.
    pub(super) fn without_row(mut self, path: &str) -> Self {
        self.rows.insert(path.to_owned(), None);
        self
    }

    pub(super) fn bytes(self) -> Vec<u8> {
        let mut rows: BTreeMap<String, Option<(String, String)>> = self
            .files
            .iter()
            .map(|(path, (bytes, _))| {
                (
                    path.clone(),
                    Some((format!("sha256={}", base64_url(bytes)), bytes.len().to_string())),
                )
            })
            .collect();
        rows.extend(self.rows);
        let record = format!("{}.dist-info/RECORD", self.stem);
        let mut text = String::new();
        for (path, row) in rows {
            let Some((hash, size)) = row else { continue };
            let path = if path.contains(['"', ',']) {
                format!("\"{}\"", path.replace('"', "\"\""))
            } else {
                path
            };
            text.push_str(&format!("{path},{hash},{size}\n"));
        }
        text.push_str(&format!("{record},,\n"));
        let mut files: Vec<(&str, &[u8], u32)> = self
            .files
            .iter()
            .map(|(path, (bytes, mode))| (path.as_str(), bytes.as_slice(), *mode))
            .collect();
        files.push((&record, text.as_bytes(), 0o100_644));
        raw_zip(&files)
    }
}

/// A store, a runtime and a base image with Python.
pub(super) struct Bench {
    pub(super) store: Store,
    pub(super) runtime: Embedded,
    pub(super) base: Image,
    reporter: SharedReporter,
    cancel: Cancel,
    _folder: tempfile::TempDir,
}

impl Bench {
    /// On bookworm with a C compiler. `None`, and a word about it, where this host cannot run containers or has no base yet
    /// and no network.
    pub(super) fn new() -> Option<Self> {
        Self::on(
            "bookworm",
            &["gcc", "libc6-dev", "python3-dev", "python3-distutils", "usr-is-merged"],
        )
    }

    /// On a suite's Python with more packages.
    pub(super) fn on(suite: &str, packages: &[&str]) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            say_skipped("needs root");
            return None;
        }
        let shared = crate::support::shared_folder().join("bases");
        let cancel = Cancel::new();
        let reporter: SharedReporter = std::sync::Arc::new(hallmark::base::progress::Silent);
        let open =
            |folder: &Path| Store::open(&folder.join("store"), &folder.join("scratch")).unwrap();
        let shared_store = open(&shared);
        let launcher = || env!("CARGO_BIN_EXE_hallmark").into();
        let image = shared.join(format!("{suite}-1.json"));
        let lock = crate::support::shared_lock("bases");
        if !image.exists() {
            let client = online_client()?;
            let packages = packages.iter().chain(&["python3", "ca-certificates"]);
            let mut definition = BaseDefinition {
                name: suite.to_owned(),
                suite: suite.to_owned(),
                packages: packages.map(ToString::to_string).collect(),
                interpreter: Interpreter::Debian,
                registry: None,
            };
            definition.packages.sort();
            let lock = lock_base(&client, &definition, Arch::HOST, &reporter, &cancel).unwrap();
            let files = hallmark::lock::base_files(&lock);
            bundle::fetch(&shared_store, &client, &files, &reporter, &cancel).unwrap();
            let runtime = Embedded::new(&shared_store, launcher()).unwrap();
            let bench = Workbench {
                store: &shared_store,
                runtime: &runtime,
                reporter: &reporter,
                cancel: &cancel,
            };
            let made = hallmark::build::base(bench, &lock).unwrap();
            hallmark::base::files::write_atomic(&image, &serde_json::to_vec(&made).unwrap())
                .unwrap();
        }
        drop(lock);
        let base: Image = serde_json::from_slice(&fs_err::read(&image).unwrap()).unwrap();

        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        for layer in &base.layers {
            let tree = shared_store.layer_path(&layer.diff_id);
            std::os::unix::fs::symlink(tree, store.layer_path(&layer.diff_id)).unwrap();
        }
        let runtime = Embedded::new(&store, launcher()).unwrap();
        Some(Self { store, runtime, base, reporter, cancel, _folder: folder })
    }

    pub(super) fn bench(&self) -> Workbench<'_> {
        Workbench {
            store: &self.store,
            runtime: &self.runtime,
            reporter: &self.reporter,
            cancel: &self.cancel,
        }
    }

    /// Puts a file into the store.
    pub(super) fn file(&self, name: &str, bytes: &[u8]) -> PythonFile {
        let sha256 = self.store.put_blob(bytes).unwrap();
        PythonFile { name: name.to_owned(), sha256, size: bytes.len() as u64, upload_time: None }
    }

    /// A package of one file, by the file's name.
    pub(super) fn package(&self, name: &str, bytes: &[u8]) -> PythonPackage {
        let mut parts = name.split('-');
        PythonPackage {
            name: parts.next().unwrap().replace('_', "-").to_lowercase(),
            version: parts.next().unwrap().trim_end_matches(".tar.gz").to_owned(),
            file: self.file(name, bytes),
        }
    }

    /// Runs a shell script in `image`; standard output, if all went well.
    pub(super) fn shell(&self, image: &Image, script: &str) -> Result<String, String> {
        let logs = tempfile::tempdir().unwrap();
        let mut run = RunSpec::new(["sh", "-ec", script], logs.path());
        run.env.extend(image.config.env.clone());
        run.network = Network::Unreachable;
        let log = self.runtime.run(Root::Layers(&image.layers), &run, &self.cancel).unwrap();
        let read = |path| String::from_utf8_lossy(&fs_err::read(path).unwrap()).into_owned();
        let (out, err) = (read(&log.stdout), read(&log.stderr));
        if log.success() { Ok(out) } else { Err(format!("{:?}\n{out}{err}", log.status)) }
    }
}

/// A client of this host's index; `None`, and a word about it, where it cannot be reached.
#[expect(
    clippy::disallowed_methods,
    reason = "the index of this host, as the command line would find it"
)]
pub(super) fn online_client() -> Option<Client> {
    let environment: BTreeMap<String, String> = std::env::vars().collect();
    let config = Config::from_host(&environment, None).unwrap();
    let client = Client::new(config, &Cancel::new()).unwrap();
    match hallmark::net::pypi::files(&client, "pip") {
        Ok(_) => Some(client),
        Err(error) => {
            say_skipped(&error.to_string());
            None
        }
    }
}

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn say_skipped(reason: &str) {
    eprintln!("skipped: {reason}");
}

/// A lock of `packages`.
pub(super) fn lock_of(packages: Vec<PythonPackage>) -> EnvLock {
    EnvLock {
        env_hash: Digest::of("spec"),
        arch: Arch::HOST,
        base: "bookworm".to_owned(),
        base_lock: Digest::of("base"),
        debs: Vec::new(),
        packages,
        build_environments: Vec::new(),
        built: Vec::new(),
    }
}

/// A spec that asks for `requirements` as of `date`.
pub(super) fn spec_of(requirements: &[&str], date: &str) -> Spec {
    Spec {
        repo: "pypi/demo".to_owned(),
        version: "1.0".to_owned(),
        setup: Setup::Commit { commit: "0".repeat(40) },
        base: "bookworm".to_owned(),
        python: "3.11".to_owned(),
        system_packages: Vec::new(),
        dependencies: Dependencies {
            requirements: requirements.iter().map(ToString::to_string).collect(),
            requirement_files: Vec::new(),
            extras: Vec::new(),
            groups: Vec::new(),
            constraints: Vec::new(),
            project: false,
            no_binary: Vec::new(),
            exclude_newer: date.parse().unwrap(),
            exclude_newer_package: BTreeMap::new(),
        },
        commands: Commands::default(),
        test: Test {
            command: Vec::new(),
            files: TestFiles::All,
            parser: Parser::Pytest,
            continue_on_collection_errors: false,
        },
        env: BTreeMap::new(),
        limits: RunLimits {
            cpus: 1.0,
            memory: 1 << 30,
            pids: 100,
            shm: 1 << 20,
            timeout: 60.0,
            test_timeout: 60.0,
        },
        compat: Compat::None,
    }
}

/// A `.tar.gz` of text files below one folder.
pub(super) fn sdist(top: &str, files: &[(&str, &str)]) -> Vec<u8> {
    let mut tar =
        tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(1_600_000_000);
        tar.append_data(&mut header, format!("{top}/{path}"), text.as_bytes()).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}
