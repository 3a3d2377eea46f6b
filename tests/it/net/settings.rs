//! Where the archives are, as hosts say it.

use std::collections::BTreeMap;
use std::path::Path;

use hallmark::net::{Config, Host};

const PIP: &str = "home/.config/pip/pip.conf";
const UV: &str = "home/.config/uv/uv.toml";
const DEBIAN: &str = "Types: deb\nURIs: http://apt.test/debian\nSuites: trixie\nComponents: main\n";

fn read(files: &[(&str, &str)], variables: &[(&str, &str)]) -> Result<Config, String> {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }
    let inside = |value: &str| value.replace("ROOT", root.path().to_str().unwrap());
    let env: BTreeMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), inside(value))).collect();
    let home = root.path().join("home");
    Config::read(&Host { env: &env, home: Some(&home), root: root.path() })
        .map_err(|error| error.to_string().replace(root.path().to_str().unwrap(), "ROOT"))
}

fn index_url(url: &str) -> String {
    format!("[global]\nindex-url = {url}\n")
}

/// The host that wins, the files, the variables.
type Row<'a> = (&'a str, Vec<(&'a str, &'a str)>, Vec<(&'a str, &'a str)>);

#[test]
fn the_index_is_the_strongest_setting() {
    let ours = ("HALLMARK_PYPI_INDEX", "https://hallmark.test/simple");
    let uv = ("UV_DEFAULT_INDEX", "https://uv-env.test/simple");
    let uv_old = ("UV_INDEX_URL", "https://uv-old.test/simple");
    let uv_toml = (UV, "index-url = \"https://uv-file.test/simple\"\n");
    let pip = ("PIP_INDEX_URL", "https://pip-env.test/simple");
    let pip_user = index_url("https://pip-user.test/simple");
    let pip_user = (PIP, pip_user.as_str());
    let pip_etc = index_url("https://pip-etc.test/simple");
    let pip_etc = ("etc/pip.conf", pip_etc.as_str());
    let pip_xdg = index_url("https://pip-xdg.test/simple");
    let pip_xdg = ("etc/xdg/pip/pip.conf", pip_xdg.as_str());
    let pip_old = index_url("https://pip-old.test/simple");
    let pip_old = ("home/.pip/pip.conf", pip_old.as_str());
    let pip_venv = index_url("https://pip-venv.test/simple");
    let pip_venv = ("venv/pip.conf", pip_venv.as_str());
    let pip_own = index_url("https://pip-own.test/simple");
    let pip_own = ("own.conf", pip_own.as_str());
    let venv = ("VIRTUAL_ENV", "ROOT/venv");
    let own = ("PIP_CONFIG_FILE", "ROOT/own.conf");
    let uv_etc = ("etc/uv/uv.toml", "[[index]]\nurl = \"https://uv-etc.test/\"\ndefault = true\n");

    let table: Vec<Row<'_>> = vec![
        ("hallmark", vec![uv_toml, pip_user], vec![ours, uv, pip]),
        ("uv-env", vec![uv_toml, pip_user], vec![uv, uv_old, pip]),
        ("uv-old", vec![uv_toml, pip_user], vec![uv_old, pip]),
        ("uv-file", vec![uv_toml, uv_etc, pip_user], vec![pip]),
        ("uv-etc", vec![uv_etc, pip_user], vec![pip]),
        (
            "uv-own",
            vec![uv_toml, ("o.toml", "index-url = \"https://uv-own.test\"")],
            vec![("UV_CONFIG_FILE", "ROOT/o.toml")],
        ),
        ("pip-env", vec![uv_toml, pip_user], vec![("UV_NO_CONFIG", "1"), pip]),
        ("pip-own", vec![pip_own, pip_venv, pip_user, pip_etc], vec![own, venv]),
        ("pip-venv", vec![pip_venv, pip_user, pip_etc], vec![venv]),
        ("pip-user", vec![pip_user, pip_old, pip_etc, pip_xdg], vec![]),
        ("pip-old", vec![pip_old, pip_etc, pip_xdg], vec![]),
        ("pip-etc", vec![pip_etc, pip_xdg], vec![]),
        ("pip-xdg", vec![pip_xdg], vec![]),
        ("pip-env", vec![], vec![("PIP_CONFIG_FILE", "/dev/null"), pip]),
        (
            "pip-moved",
            vec![("x/pip/pip.conf", "[global]\nindex-url=https://pip-moved.test")],
            vec![("XDG_CONFIG_HOME", "ROOT/x")],
        ),
    ];
    for (name, files, variables) in table {
        let config = read(&files, &variables).unwrap();
        let shown = config.pypi_index.address.to_string();
        assert!(shown.starts_with(&format!("https://{name}.test/")), "{name}: {shown}");
        assert!(shown.ends_with('/'), "{shown}");
    }
    let none = read(&[pip_user, pip_etc], &[("PIP_CONFIG_FILE", "/dev/null")]).unwrap();
    assert_eq!(none.pypi_index.from, "default");
    let from = read(&[pip_user], &[]).unwrap().pypi_index.from;
    assert!(from.ends_with(".config/pip/pip.conf"), "{from}");
}

#[test]
fn what_would_change_a_lock_is_never_taken() {
    let plain = read(&[], &[]).unwrap();
    let trap = "[global]\nfind-links = /opt/wheels\nextra-index-url = https://extra.test/simple\n\
                no-index = true\nconstraint = /opt/constraints.txt\n";
    let uv = "find-links = [\"/opt/wheels\"]\nextra-index-url = [\"https://extra.test/\"]\n\
              [[index]]\nurl = \"https://extra.test/\"\n";
    let trapped = read(
        &[(PIP, trap), (UV, uv)],
        &[
            ("PIP_FIND_LINKS", "/opt/wheels"),
            ("PIP_EXTRA_INDEX_URL", "https://extra.test/simple"),
            ("PIP_NO_INDEX", "1"),
            ("PIP_CONSTRAINT", "/opt/constraints.txt"),
            ("UV_FIND_LINKS", "/opt/wheels"),
            ("UV_EXTRA_INDEX_URL", "https://extra.test/simple"),
            ("UV_INDEX", "https://extra.test/simple"),
            ("UV_CONSTRAINT", "/opt/constraints.txt"),
        ],
    )
    .unwrap();
    // Each host has a home of its own.
    let trapped = Config { registries: plain.registries.clone(), ..trapped };
    assert_eq!(trapped, plain);
    let variables = trapped.uv_environment().unwrap().variables;
    assert_eq!(variables.keys().collect::<Vec<_>>(), ["UV_DEFAULT_INDEX"]);
}

#[test]
fn the_mirror_is_that_of_apts_sources() {
    let list = "deb [arch=amd64] http://list.test/debian bookworm main contrib\n";
    let other = "deb https://packages.test/apt cloud-sdk-bookworm main\n";
    for (expected, files, variables) in [
        (
            "http://apt.test/debian/",
            vec![("etc/apt/sources.list.d/debian.sources", DEBIAN)],
            vec![],
        ),
        (
            "http://list.test/debian/",
            vec![("etc/apt/sources.list", list), ("etc/apt/sources.list.d/debian.sources", DEBIAN)],
            vec![],
        ),
        (
            "http://apt.test/debian/",
            vec![
                ("etc/apt/sources.list.d/a.list", other),
                ("etc/apt/sources.list.d/b.sources", DEBIAN),
                ("etc/apt/sources.list.d/a.sources.bak", list),
            ],
            vec![],
        ),
        (
            "https://ours.test/debian/",
            vec![("etc/apt/sources.list", list)],
            vec![("HALLMARK_DEBIAN_MIRROR", "https://ours.test/debian")],
        ),
    ] {
        let config = read(&files, &variables).unwrap();
        assert_eq!(config.debian_mirror.address.to_string(), expected);
    }
    assert_eq!(read(&[], &[]).unwrap().debian_mirror.from, "default");
    let snapshot = read(&[], &[("HALLMARK_DEBIAN_SNAPSHOT", "https://s.test/a")]).unwrap();
    assert_eq!(snapshot.debian_snapshot.address.expose(), "https://s.test/a/");
}

#[test]
fn the_offline_switch_reads_as_people_write_it() {
    for (value, offline) in
        [("1", true), ("true", true), ("yes", true), ("", false), ("0", false), ("No", false)]
    {
        assert_eq!(read(&[], &[("HALLMARK_OFFLINE", value)]).unwrap().offline, offline, "{value}");
    }
}

#[test]
fn credentials_are_used_and_never_shown() {
    let config =
        read(&[], &[("HALLMARK_PYPI_INDEX", "https://me:secret@corp.test/simple")]).unwrap();
    assert!(config.pypi_index.address.expose().contains("me:secret@"));
    assert!(!format!("{config:?}").contains("secret"));

    // uv's way of naming them apart.
    let toml =
        "[[index]]\nname = \"my-corp\"\nurl = \"https://corp.test/simple\"\ndefault = true\n";
    let apart = [("UV_INDEX_MY_CORP_USERNAME", "me"), ("UV_INDEX_MY_CORP_PASSWORD", "s")];
    let config = read(&[(UV, toml)], &apart).unwrap();
    assert_eq!(config.pypi_index.address.expose(), "https://me:s@corp.test/simple/");
    let named = [apart[0], apart[1], ("UV_DEFAULT_INDEX", "my-corp=https://corp.test/simple")];
    let config = read(&[], &named).unwrap();
    assert_eq!(config.pypi_index.address.expose(), "https://me:s@corp.test/simple/");

    let error = read(&[], &[("PIP_INDEX_URL", "ftp://me:secret@corp.test")]).unwrap_err();
    assert_eq!(error, "PIP_INDEX_URL: only http and https are supported");
    let error = read(&[(UV, "index-url = 3\n")], &[]).unwrap_err();
    assert!(error.starts_with("ROOT/home/.config/uv/uv.toml: "), "{error}");
}

#[test]
fn proxies_and_certificates_reach_uv() {
    let pem = fs_err::read_to_string(super::server::certificate_path()).unwrap();
    let system = ("etc/ssl/certs/ca-certificates.crt", pem.as_str());
    let config = read(&[system], &[]).unwrap();
    assert_eq!(config.certificates.files.len(), 1);

    let config = read(
        &[system, ("own.pem", &pem), ("pip.pem", &pem), (PIP, "[global]\nproxy = p.test:3128\n")],
        &[
            ("SSL_CERT_FILE", "ROOT/own.pem"),
            ("PIP_CERT", "ROOT/pip.pem"),
            ("REQUESTS_CA_BUNDLE", "ROOT/own.pem"),
            ("https_proxy", "http://secure.test:8080"),
            ("HTTPS_PROXY", "http://upper.test"),
            ("NO_PROXY", "localhost"),
        ],
    )
    .unwrap();
    let names: Vec<_> =
        config.certificates.files.iter().map(|path| path.file_name().unwrap()).collect();
    assert_eq!(names, [Path::new("own.pem").as_os_str(), Path::new("pip.pem").as_os_str()]);
    assert_eq!(config.proxy.http.as_deref(), Some("http://p.test:3128"));
    assert_eq!(config.proxy.https.as_deref(), Some("http://secure.test:8080"));
    assert_eq!(config.proxy.except.as_deref(), Some("localhost"));
}

#[test]
fn uv_is_told_all_it_needs() {
    let root = tempfile::tempdir().unwrap();
    let env = BTreeMap::from([
        ("SSL_CERT_FILE".to_owned(), super::server::certificate_path().display().to_string()),
        ("UV_DEFAULT_INDEX".to_owned(), "https://me:s@corp.test/simple".to_owned()),
        ("http_proxy".to_owned(), "http://p.test:3128".to_owned()),
        ("no_proxy".to_owned(), "corp.test".to_owned()),
    ]);
    let config = Config::read(&Host { env: &env, home: None, root: root.path() }).unwrap();
    let uv = config.uv_environment().unwrap();
    let variables: Vec<_> = uv.variables.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(
        variables,
        [
            ("HTTP_PROXY", "http://p.test:3128"),
            ("NO_PROXY", "corp.test"),
            ("SSL_CERT_FILE", "/run/hallmark/ca.pem"),
            ("UV_DEFAULT_INDEX", "https://me:s@corp.test/simple/"),
            ("http_proxy", "http://p.test:3128"),
            ("no_proxy", "corp.test"),
        ]
    );
    let pem = fs_err::read_to_string(super::server::certificate_path()).unwrap();
    assert_eq!(uv.certificates, Some(pem));
}
