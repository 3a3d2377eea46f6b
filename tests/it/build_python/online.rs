//! Real packages from PyPI. Skipped, with a word, where the index cannot be reached.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use hallmark::base::Cancel;
use hallmark::build::{EnvBuild, env};
use hallmark::bundle;
use hallmark::lock::{EnvLock, FileRef, Origin, PythonPackage};
use hallmark::net::Client;
use hallmark::resolve::python::{PythonLock, lock};
use hallmark::runtime::{Mount, Network, Root, RunSpec, Runtime as _};
use hallmark::spec::Spec;

use super::scaffold::{Bench, lock_of, online_client, sdist, spec_of};

fn setup() -> Option<(Client, Bench)> {
    Some((online_client()?, Bench::new()?))
}

fn solve(client: &Client, bench: &Bench, spec: &Spec, source: &Path) -> Result<PythonLock, String> {
    lock(bench.bench(), client, &bench.base, spec, source)
        .map_err(|error| format!("{error}\n{}", error.hint().unwrap_or_default()))
}

fn fetch(client: &Client, bench: &Bench, lock: &EnvLock) {
    let environments = lock.build_environments.iter().flat_map(|environment| &environment.packages);
    let files: Vec<FileRef> = lock
        .packages
        .iter()
        .chain(environments)
        .map(|PythonPackage { name, file, .. }| FileRef {
            name: file.name.clone(),
            sha256: file.sha256,
            size: file.size,
            origin: Origin::Pypi { project: name.clone() },
        })
        .collect();
    let bench = bench.bench();
    bundle::fetch(bench.store, client, &files, bench.reporter, bench.cancel).unwrap();
}

fn env_lock(solved: &PythonLock) -> EnvLock {
    let mut lock = lock_of(solved.packages.clone());
    lock.build_environments.clone_from(&solved.build_environments);
    lock
}

fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        fs_err::write(folder.path().join(path), text).unwrap();
    }
    folder
}

/// A flit project with extras, groups and a requirement file.
fn demo() -> tempfile::TempDir {
    project(&[
        (
            "pyproject.toml",
            "[build-system]\nrequires = ['flit_core >=3.4,<4']\nbuild-backend = 'flit_core.buildapi'\n\
             [project]\nname = 'demo'\nversion = '1.0'\ndescription = 'x'\ndependencies = ['attrs']\n\
             [project.optional-dependencies]\nall = ['demo[fast]']\nfast = ['markupsafe']\n\
             [dependency-groups]\nlint = ['pyflakes']\n",
        ),
        ("demo.py", "'''x'''\n"),
        ("dev.txt", "iniconfig # why\n-e .\n"),
    ])
}

#[test]
fn online_a_project_is_locked_with_extras_groups_and_sdists() {
    let Some((client, bench)) = setup() else { return };
    let source = demo();
    let mut spec = spec_of(&["pytest", "blinker"], "2022-02-20T00:00:00Z");
    spec.dependencies.project = true;
    spec.dependencies.extras = vec!["all".to_owned()];
    spec.dependencies.groups = vec!["lint".to_owned()];
    spec.dependencies.requirement_files = vec!["dev.txt".to_owned()];
    let solved = solve(&client, &bench, &spec, source.path()).unwrap();
    let found: Vec<String> = solved
        .packages
        .iter()
        .map(|package| format!("{} {} {}", package.name, package.version, package.file.name))
        .collect();
    assert_eq!(
        found,
        [
            "attrs 21.4.0 attrs-21.4.0-py2.py3-none-any.whl",
            "blinker 1.4 blinker-1.4.tar.gz",
            "flit-core 3.6.0 flit_core-3.6.0-py3-none-any.whl",
            "iniconfig 1.1.1 iniconfig-1.1.1-py2.py3-none-any.whl",
            "markupsafe 2.1.0 MarkupSafe-2.1.0.tar.gz",
            "packaging 21.3 packaging-21.3-py3-none-any.whl",
            "pip 22.0.3 pip-22.0.3-py3-none-any.whl",
            "pluggy 1.0.0 pluggy-1.0.0-py2.py3-none-any.whl",
            "py 1.11.0 py-1.11.0-py2.py3-none-any.whl",
            "pyflakes 2.4.0 pyflakes-2.4.0-py2.py3-none-any.whl",
            "pyparsing 3.0.7 pyparsing-3.0.7-py3-none-any.whl",
            "pytest 7.0.1 pytest-7.0.1-py3-none-any.whl",
            "tomli 2.0.1 tomli-2.0.1-py3-none-any.whl",
        ]
    );
    let environments: Vec<_> = solved
        .build_environments
        .iter()
        .map(|environment| {
            let names = environment
                .packages
                .iter()
                .map(|package| format!("{} {}", package.name, package.version));
            (environment.sdist.as_str(), names.collect::<Vec<_>>())
        })
        .collect();
    let tools = || vec!["setuptools 60.9.3".to_owned(), "wheel 0.37.1".to_owned()];
    assert_eq!(
        environments,
        [("MarkupSafe-2.1.0.tar.gz", tools()), ("blinker-1.4.tar.gz", tools())]
    );

    // Another order, another time: the same lock.
    spec.dependencies.requirements.reverse();
    assert_eq!(solve(&client, &bench, &spec, source.path()).unwrap(), solved);

    // Both sdists (one with a C extension) give the same wheels in another store.
    let Some(other) = Bench::new() else { return };
    let lock = env_lock(&solved);
    let [first, second] = [&bench, &other].map(|bench| -> EnvBuild {
        fetch(&client, bench, &lock);
        env(bench.bench(), &bench.base, &spec, &lock).unwrap()
    });
    assert_eq!(first, second);
    assert_eq!(first.built.len(), 2);
    let script = "python3 -c 'import markupsafe._speedups as s, blinker; print(s.__file__.rsplit(\"/\", 1)[1])'\npytest --version\n";
    let out = bench.shell(&first.image, script).unwrap();
    assert!(out.starts_with("_speedups.cpython-311-"), "{out}");
}

#[test]
fn online_what_the_project_lacks_is_named() {
    let Some((client, bench)) = setup() else { return };
    let source = demo();
    let mut spec = spec_of(&[], "2022-02-20T00:00:00Z");
    spec.dependencies.project = true;
    spec.dependencies.extras = vec!["tests".to_owned()];
    assert_eq!(
        solve(&client, &bench, &spec, source.path()).unwrap_err(),
        "demo has no extra `tests`\nthere are: all, fast"
    );
    spec.dependencies.extras.clear();
    spec.dependencies.groups = vec!["dev".to_owned()];
    assert_eq!(
        solve(&client, &bench, &spec, source.path()).unwrap_err(),
        "demo has no dependency group `dev`\nthere are: lint"
    );
}

#[test]
fn online_a_silent_fallback_is_pointed_out() {
    let Some((client, bench)) = setup() else { return };
    // All files of atomicwrites were uploaded again in July 2022.
    let source = project(&[]);
    let spec = spec_of(&["pytest"], "2019-10-01T00:00:00Z");
    let solved = solve(&client, &bench, &spec, source.path()).unwrap();
    let pytest = solved.packages.iter().find(|package| package.name == "pytest").unwrap();
    assert_eq!(pytest.version, "3.5.1");
    let expected =
        "pytest 3.5.1 of 2018-04-24 was resolved, although 5.2.0 of 2019-09-29 existed by the date";
    assert!(
        solved.notices.iter().any(|notice| notice.starts_with(expected)),
        "{:?}",
        solved.notices
    );
}

/// What only `setup.py` knows and the lock does not: setuptools tries to fetch it, and cannot. (A plain `setup_requires` is a build
/// requirement, so it is locked; the hooks fetch nothing for it.)
#[test]
fn online_setup_requires_beyond_the_lock_fail_offline() {
    let Some((client, bench)) = setup() else { return };
    let spec = spec_of(&["blinker"], "2022-02-20T00:00:00Z");
    let solved = solve(&client, &bench, &spec, project(&[]).path()).unwrap();
    let setup_py = "from setuptools import Distribution, setup\nDistribution().fetch_build_eggs(['six==1.16.0'])\nsetup(name='made', version='1')\n";
    let bytes = sdist("made-1", &[("setup.py", setup_py)]);
    let mut lock = lock_of(vec![bench.package("made-1.tar.gz", &bytes)]);
    lock.build_environments.clone_from(&solved.build_environments);
    "made-1.tar.gz".clone_into(&mut lock.build_environments[0].sdist);
    let mut wanted = lock.clone();
    wanted.packages.clear();
    fetch(&client, &bench, &wanted);
    let error = env(bench.bench(), &bench.base, &spec, &lock).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("building made-1.tar.gz: it tried to download something"), "{text}");
    assert!(error.hint().unwrap().contains("`setup_requires`"));
}

#[test]
fn online_a_spec_for_another_python_is_refused() {
    let Some((client, bench)) = setup() else { return };
    let mut spec = spec_of(&[], "2022-02-20T00:00:00Z");
    "3.9".clone_into(&mut spec.python);
    let error = solve(&client, &bench, &spec, project(&[]).path()).unwrap_err();
    assert!(
        error.starts_with("the spec asks for Python 3.9: its base `bookworm` has 3.11."),
        "{error}"
    );
}

/// Python 3.9 says its local scheme in distutils alone, 3.13 has no distutils; both must install where they look.
#[test]
fn online_every_suite_installs_where_its_python_looks() {
    let Some(client) = online_client() else { return };
    for (suite, packages, python) in
        [("bullseye", &["python3-distutils"][..], "3.9"), ("trixie", &[], "3.13")]
    {
        let Some(bench) = Bench::on(suite, packages) else { return };
        let mut spec = spec_of(&["pytest", "markupsafe"], "2024-11-01T00:00:00Z");
        python.clone_into(&mut spec.python);
        spec.dependencies.no_binary = vec!["toml".to_owned()];
        spec.dependencies.requirements.push("toml".to_owned());
        let solved = solve(&client, &bench, &spec, project(&[]).path()).unwrap();
        let tag = format!("cp{0}-cp{0}", python.replace('.', ""));
        assert!(
            solved.packages.iter().any(|package| package.file.name.contains(&tag)),
            "{solved:?}"
        );
        let lock = env_lock(&solved);
        fetch(&client, &bench, &lock);
        let built = env(bench.bench(), &bench.base, &spec, &lock).unwrap();
        let script = "python3 -c 'import markupsafe._speedups, toml; print(toml.__file__)'\nwhich pytest\npytest --version >/dev/null\n\
                      pip --version >/dev/null && python3 -m pip check\n\
                      find /usr/local/lib/python3* -name '*.pyc' | grep -c .\n";
        let out = bench.shell(&built.image, script).unwrap();
        let expected = format!(
            "/usr/local/lib/python{python}/dist-packages/toml/__init__.py\n/usr/local/bin/pytest\nNo broken requirements found.\n"
        );
        assert!(out.starts_with(&expected), "{out}");
    }
}

/// Paths and contents below the prefix, without compiled files.
fn listing(tree: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in walkdir::WalkDir::new(tree) {
        let entry = entry.unwrap();
        let path = entry.path().strip_prefix(tree).unwrap().to_str().unwrap().to_owned();
        let is_wanted = path.starts_with("usr/local/") && !path.contains("__pycache__");
        if !entry.file_type().is_file() || !is_wanted {
            continue;
        }
        let bytes = fs_err::read(entry.path()).unwrap();
        // uv's scripts also cut suffixes of Windows; ours do the same thing otherwise.
        let text = String::from_utf8_lossy(&bytes);
        let text = if path.starts_with("usr/local/bin/") {
            let only_windows = |line: &&str| {
                !line.contains("sys.argv[0]") && !line.starts_with("# -*-") && !line.is_empty()
            };
            text.lines().filter(only_windows).collect::<Vec<_>>().join("\n")
        } else if path.ends_with(".dist-info/RECORD") {
            // The rows of scripts hold the hash of their text.
            let mut rows: Vec<&str> = text.lines().filter(|row| !row.contains("/bin/")).collect();
            rows.sort_unstable();
            rows.join("\n")
        } else {
            hallmark::base::Digest::of(&bytes).to_string()
        };
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        found.insert(path, format!("{mode:o} {text}"));
    }
    found
}

#[test]
fn online_wheels_are_installed_as_uv_does() {
    let Some((client, bench)) = setup() else { return };
    let requirements =
        ["pytest", "sphinx", "numpy", "jmespath", "greenlet", "pbr", "pyyaml", "lxml"];
    let spec = spec_of(&requirements, "2023-09-01T00:00:00Z");
    let solved = solve(&client, &bench, &spec, project(&[]).path()).unwrap();
    assert_eq!(solved.build_environments, []);
    let lock = env_lock(&solved);
    fetch(&client, &bench, &lock);
    let ours = env(bench.bench(), &bench.base, &spec, &lock).unwrap();

    // The same files by uv, in a container over the base.
    let folder = tempfile::tempdir().unwrap();
    let wheels = folder.path().join("wheels");
    fs_err::create_dir(&wheels).unwrap();
    let mut text = String::new();
    for PythonPackage { file, .. } in &lock.packages {
        fs_err::hard_link(bench.store.blob_path(&file.sha256), wheels.join(&file.name))
            .or_else(|_| {
                fs_err::copy(bench.store.blob_path(&file.sha256), wheels.join(&file.name))
                    .map(|_| ())
            })
            .unwrap();
        text.push_str(&format!("/run/wheels/{}\n", file.name));
    }
    fs_err::write(wheels.join("r.txt"), text).unwrap();
    let tool = fs_err::read_dir(bench.store.root().join("trees"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.join("uv").exists())
        .unwrap();
    let command = "umask 022; /run/uv/uv pip install --no-config --offline --no-index --no-deps --link-mode copy \
                   --no-python-downloads --break-system-packages --system --python /usr/bin/python3 -r /run/wheels/r.txt";
    let mut run = RunSpec::new(["sh", "-c", command], folder.path());
    run.env.insert("UV_NO_INSTALLER_METADATA".to_owned(), "1".to_owned());
    run.env.insert("UV_CACHE_DIR".to_owned(), "/tmp/uv-cache".to_owned());
    run.network = Network::Unreachable;
    run.keep_upper = true;
    let mount = |source: &Path, target: &str| Mount {
        source: source.to_owned(),
        target: target.to_owned(),
        writable: false,
    };
    run.mounts = vec![mount(&wheels, "/run/wheels"), mount(&tool, "/run/uv")];
    let log = bench.runtime.run(Root::Layers(&bench.base.layers), &run, &Cancel::new()).unwrap();
    assert!(log.success(), "{}", fs_err::read_to_string(&log.stderr).unwrap());
    let upper = log.upper.unwrap();
    let theirs = listing(&upper);
    let layer = ours.image.layers.last().unwrap();
    let mut ours = listing(&bench.store.layer_path(&layer.diff_id));
    let mut theirs: BTreeMap<String, String> = theirs;
    // Files installed from paths get a record of that path.
    theirs.retain(|path, _| !path.ends_with("/direct_url.json"));
    for listing in [&mut ours, &mut theirs] {
        for (path, text) in listing.iter_mut() {
            if path.ends_with("/RECORD") {
                let rows = text.lines().filter(|row| !row.contains("/direct_url.json,"));
                *text = rows.collect::<Vec<_>>().join("\n");
            }
        }
    }
    let names =
        |listing: &BTreeMap<String, String>| listing.keys().cloned().collect::<BTreeSet<_>>();
    let (our_names, their_names) = (names(&ours), names(&theirs));
    assert_eq!(our_names.difference(&their_names).collect::<Vec<_>>(), Vec::<&String>::new());
    assert_eq!(their_names.difference(&our_names).collect::<Vec<_>>(), Vec::<&String>::new());
    let different: Vec<_> = ours
        .iter()
        .filter(|(path, text)| theirs[*path] != **text)
        .map(|(path, text)| format!("{path}\n{text}\n---\n{}", theirs[path]))
        .take(3)
        .collect();
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert!(ours.len() > 1000, "{}", ours.len());
    hallmark::image::remove_tree(&upper).unwrap();
}
