//! Env images of wheels and sdists made by hand: no network.

use hallmark::build::{EnvBuild, LayerPlan, env, env_with_plan};
use hallmark::lock::{BuildEnvironment, BuiltWheel, EnvLock};

use super::scaffold::{Bench, WheelMaker, lock_of, sdist, spec_of};

const NAMESPACE: &str =
    "from pkgutil import extend_path\n__path__ = extend_path(__path__, __name__)\n";
const RESOURCES: &str = "__import__('pkg_resources').declare_namespace(__name__)\n";

/// Constants whose order depends on the hash seed, and names that are interned or not.
const CODE: &str = "def main():\n    x = 'q'\n    print('old', x in {'a', 'b', 'c', 'd', 'q', 'zz'}, ('a', 1, 'b'))\n";

fn tool() -> (&'static str, Vec<u8>) {
    let wheel = WheelMaker::new("tool", "1")
        .file("tool/__init__.py", CODE)
        .file("tool/broken.py", "print 'python 2'\n")
        .file("tool-1.dist-info/entry_points.txt", "[console_scripts]\ntool = tool:main\n");
    ("tool-1-py3-none-any.whl", wheel.bytes())
}

fn part(name: &str, init: &str) -> (String, Vec<u8>) {
    let wheel = WheelMaker::new(name, "1")
        .file("ns/__init__.py", init)
        .file(&format!("ns/{name}.py"), &format!("NAME = '{name}'\n"));
    (format!("{name}-1-py3-none-any.whl"), wheel.bytes())
}

fn lock(bench: &Bench, reversed: bool) -> EnvLock {
    let (name, bytes) = tool();
    let mut packages = vec![bench.package(name, &bytes)];
    for (name, init) in [("one", NAMESPACE), ("two", RESOURCES)] {
        let (name, bytes) = part(name, init);
        packages.push(bench.package(&name, &bytes));
    }
    if reversed {
        packages.reverse();
    }
    lock_of(packages)
}

fn build(bench: &Bench, lock: &EnvLock) -> EnvBuild {
    env(bench.bench(), &bench.base, &spec_of(&[], "2024-01-01T00:00:00Z"), lock).unwrap()
}

#[test]
fn two_stores_and_two_orders_give_one_image() {
    let (Some(one), Some(two)) = (Bench::new(), Bench::new()) else { return };
    let first = build(&one, &lock(&one, false));
    // The second store compiles one distribution alone before all together.
    let (name, bytes) = tool();
    build(&two, &lock_of(vec![two.package(name, &bytes)]));
    let second = build(&two, &lock(&two, true));
    assert_eq!(first.image, second.image);
    assert_eq!(first.image.layers.len(), one.base.layers.len() + 1);

    // The image works as it is: scripts on PATH, both halves of the namespace, bytecode that names its source by hash.
    let script = "tool\npython3 -c 'import ns.one, ns.two; print(ns.one.NAME, ns.two.NAME)'\n\
                  cd /usr/local/lib/python3*/dist-packages\n\
                  od -A n -t x1 -j 4 -N 4 tool/__pycache__/__init__.*.pyc\nls tool/__pycache__ | wc -l\n\
                  stat -c '%Y %u:%g %a' tool tool/__init__.py tool/__pycache__/*.pyc /usr/local/bin/tool\n";
    assert_eq!(
        one.shell(&first.image, script).unwrap(),
        "old True ('a', 1, 'b')\none two\n 03 00 00 00\n1\n\
         315532800 0:0 755\n315532800 0:0 644\n315532800 0:0 644\n315532800 0:0 755\n"
    );
}

#[test]
fn a_plan_cuts_layers_and_changes_nothing_else() {
    let Some(bench) = Bench::new() else { return };
    let lock = lock(&bench, false);
    let whole = build(&bench, &lock);
    let plan = LayerPlan { groups: vec![vec!["two".to_owned()], vec!["tool".to_owned()]] };
    let spec = spec_of(&[], "2024-01-01T00:00:00Z");
    let cut = env_with_plan(bench.bench(), &bench.base, &spec, &lock, &plan).unwrap();
    assert_eq!(cut.image.layers.len(), bench.base.layers.len() + 3);
    assert_eq!(cut.image.key, whole.image.key);
    let digests = |image: &hallmark::image::Image| {
        let listing = "cd /usr/local; find . -type f | sort | xargs sha256sum; find . | sort | xargs stat -c '%n %a %Y'";
        bench.shell(image, listing).unwrap()
    };
    assert_eq!(digests(&whole.image), digests(&cut.image));
}

#[test]
fn a_patched_source_never_runs_old_code() {
    let Some(bench) = Bench::new() else { return };
    let image = build(&bench, &lock(&bench, false)).image;
    // The same size and the same time: only the hash can tell.
    let script = "cd /usr/local/lib/python3*/dist-packages/tool\n\
                  sed -i s/old/new/ __init__.py\ntouch -d @315532800 __init__.py\ntool\n";
    assert_eq!(bench.shell(&image, script).unwrap(), "new True ('a', 1, 'b')\n");
}

#[test]
fn distributions_that_differ_in_a_file_are_refused() {
    let Some(bench) = Bench::new() else { return };
    let wheel = |name: &str| WheelMaker::new(name, "1").file("tests/helper.py", name).bytes();
    let lock = lock_of(vec![
        bench.package("left-1-py3-none-any.whl", &wheel("left")),
        bench.package("right-1-py3-none-any.whl", &wheel("right")),
    ]);
    let spec = spec_of(&[], "2024-01-01T00:00:00Z");
    let error = env(bench.bench(), &bench.base, &spec, &lock).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the distributions left and right: they differ in /usr/local/lib/python3"),
        "{error}"
    );
    assert!(error.hint().is_some());
}

/// A backend in the source tree, so that nothing has to be installed. Its wheels differ each time: clock, zip times,
/// umask, order of files.
const BACKEND: &str = "
import os, random, time, zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    BODY
    import base64, hashlib
    files = {
        'made.py': 'PLACE = %r\\n' % (os.getcwd(),),
        'made-1.dist-info/WHEEL': 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\n',
        'made-1.dist-info/METADATA': 'Metadata-Version: 2.1\\nName: made\\nVersion: 1\\n',
    }
    record = ''
    for name, text in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip('=')
        record += '%s,sha256=%s,%d\\n' % (name, digest, len(text))
    files['made-1.dist-info/RECORD'] = record + 'made-1.dist-info/RECORD,,\\n'
    names = list(files)
    random.shuffle(names)
    name = 'made-1-py3-none-any.whl'
    with zipfile.ZipFile(os.path.join(folder, name), 'w', zipfile.ZIP_DEFLATED) as archive:
        for entry in names:
            info = zipfile.ZipInfo(entry, time.localtime(random.randrange(10**9, 2 * 10**9))[:6])
            info.external_attr = random.choice([0o100664, 0o100640]) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, files[entry])
    return name
";

fn source_lock(bench: &Bench, body: &str) -> EnvLock {
    let bytes = sdist(
        "made-1",
        &[
            (
                "pyproject.toml",
                "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n",
            ),
            ("backend.py", &BACKEND.replace("BODY", body)),
        ],
    );
    let package = bench.package("made-1.tar.gz", &bytes);
    let mut lock = lock_of(vec![package]);
    lock.build_environments =
        vec![BuildEnvironment { sdist: "made-1.tar.gz".to_owned(), packages: Vec::new() }];
    lock
}

#[test]
fn an_sdist_is_built_to_the_same_wheel_everywhere() {
    let (Some(one), Some(two)) = (Bench::new(), Bench::new()) else { return };
    let [first, second] = [&one, &two].map(|bench| build(bench, &source_lock(bench, "pass")));
    assert_eq!(first, second);
    let [built] = &first.built[..] else { panic!("{:?}", first.built) };
    assert_eq!(
        (built.sdist.as_str(), built.wheel.as_str()),
        ("made-1.tar.gz", "made-1-py3-none-any.whl")
    );
    assert_eq!(
        one.shell(&first.image, "python3 -c 'import made; print(made.PLACE)'").unwrap(),
        "/build/made-1\n"
    );

    // A lock that knows its wheel must be met.
    let mut lock = source_lock(&one, "pass");
    lock.built = first.built.clone();
    assert_eq!(build(&one, &lock), first);
    let other = BuiltWheel { sha256: hallmark::base::Digest::of("other"), ..built.clone() };
    lock.built = vec![other.clone()];
    let spec = spec_of(&[], "2024-01-01T00:00:00Z");
    let error = env(one.bench(), &one.base, &spec, &lock).unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            "made-1-py3-none-any.whl, built from made-1.tar.gz: expected {}, got {}",
            other.sha256, built.sha256
        )
    );
}

#[test]
fn a_build_has_no_network_and_says_so() {
    let Some(bench) = Bench::new() else { return };
    let fetch = "import urllib.request; urllib.request.urlopen('http://example.org/')";
    let spec = spec_of(&[], "2024-01-01T00:00:00Z");
    let error = env(bench.bench(), &bench.base, &spec, &source_lock(&bench, fetch)).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("building made-1.tar.gz: it tried to download something"), "{text}");
    assert!(error.hint().unwrap().contains("build requirements"));

    let error = env(bench.bench(), &bench.base, &spec, &source_lock(&bench, "raise SystemExit(3)"))
        .unwrap_err();
    assert!(error.to_string().starts_with("building made-1.tar.gz failed: exit code 3"), "{error}");
}
