//! Archives made by strangers.

use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use hallmark::bundle::{self, Error, sdist::SdistError};
use tar::EntryType;

use super::store;

struct Entry {
    name: &'static [u8],
    kind: EntryType,
    mode: u32,
    content: &'static [u8],
    link: &'static [u8],
}

fn file(name: &'static str, content: &'static str) -> Entry {
    let (name, content) = (name.as_bytes(), content.as_bytes());
    Entry { name, kind: EntryType::Regular, mode: 0o664, content, link: b"" }
}

fn link(kind: EntryType, name: &'static str, link: &'static str) -> Entry {
    Entry { name: name.as_bytes(), kind, mode: 0o777, content: b"", link: link.as_bytes() }
}

fn special(kind: EntryType, name: &'static str) -> Entry {
    Entry { name: name.as_bytes(), kind, mode: 0o777, content: b"", link: b"" }
}

fn tar_gz(entries: &[Entry]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for entry in entries {
        let mut header = tar::Header::new_gnu();
        let raw = header.as_mut_bytes();
        raw[..entry.name.len()].copy_from_slice(entry.name);
        raw[157..157 + entry.link.len()].copy_from_slice(entry.link);
        header.set_size(entry.content.len() as u64);
        header.set_mode(entry.mode);
        header.set_uid(1000);
        header.set_gid(1000);
        header.set_mtime(1_600_000_000);
        header.set_entry_type(entry.kind);
        header.set_cksum();
        out.write_all(header.as_bytes()).unwrap();
        out.write_all(entry.content).unwrap();
        let rest = entry.content.len().next_multiple_of(512) - entry.content.len();
        out.write_all(&vec![0; rest]).unwrap();
    }
    out.write_all(&[0; 1024]).unwrap();
    out.finish().unwrap()
}

fn extract(bytes: &[u8], name: &str, into: &Path) -> Result<std::path::PathBuf, Error> {
    let archive = tempfile::NamedTempFile::new().unwrap();
    fs_err::write(archive.path(), bytes).unwrap();
    bundle::sdist::extract_file(archive.path(), name, into)
}

#[test]
fn a_usual_sdist_is_unpacked_as_it_is() {
    let entries = [
        Entry {
            kind: EntryType::XGlobalHeader,
            content: b"19 comment=0123456\n",
            ..file("pax", "")
        },
        special(EntryType::Directory, "demo-1.0/"),
        file("demo-1.0/setup.py", "setup()\n"),
        Entry { mode: 0o700, ..file("demo-1.0/configure", "#!/bin/sh\n") },
        file("./demo-1.0//pkg/./__init__.py", ""),
        Entry { name: b"demo-1.0/caf\xe9 \xff", ..file("", "latin\n") },
        link(EntryType::Symlink, "demo-1.0/pkg/setup.py", "../setup.py"),
        link(EntryType::Link, "demo-1.0/again.py", "demo-1.0/setup.py"),
        file("demo-1.0/setup.py", "setup()\n"),
    ];
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let digest = store.put_blob(&tar_gz(&entries)).unwrap();
    let into = folder.path().join("into");
    let top = bundle::sdist::extract(&store, &digest, "demo-1.0.tar.gz", &into).unwrap();
    assert_eq!(top, into.join("demo-1.0"));
    let mode = |name: &str| fs_err::metadata(top.join(name)).unwrap().permissions().mode() & 0o7777;
    assert_eq!(
        [mode(""), mode("setup.py"), mode("configure"), mode("pkg")],
        [0o755, 0o644, 0o755, 0o755]
    );
    let modified = fs_err::metadata(top.join("setup.py")).unwrap().modified().unwrap();
    assert_eq!(modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs(), 1_600_000_000);
    assert_eq!(fs_err::read_link(top.join("pkg/setup.py")).unwrap(), Path::new("../setup.py"));
    assert_eq!(fs_err::read(top.join("again.py")).unwrap(), b"setup()\n");
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9 \xff");
    assert_eq!(fs_err::read(top.join(name)).unwrap(), b"latin\n");
}

#[test]
fn without_one_top_folder_the_whole_is_the_top() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = tar_gz(&[file("setup.py", ""), file("pkg/x.py", "")]);
    assert_eq!(extract(&bytes, "x-1.TGZ", folder.path()).unwrap(), folder.path());
}

#[test]
fn entries_that_leave_the_folder_are_refused() {
    let table: Vec<(&str, Vec<Entry>, &str)> = vec![
        ("absolute", vec![file("/tmp/x", "")], "has an absolute path"),
        ("parent", vec![file("d/../../x", "")], "has `..` in its path"),
        ("parent inside", vec![file("d/../x", "")], "has `..` in its path"),
        ("link out", vec![link(EntryType::Symlink, "d/l", "../../x")], "may lead out"),
        ("absolute link", vec![link(EntryType::Symlink, "l", "/etc/passwd")], "may lead out"),
        (
            "through a link",
            vec![
                special(EntryType::Directory, "d"),
                link(EntryType::Symlink, "l", "d"),
                file("l/x", ""),
            ],
            "leads through a symbolic link",
        ),
        (
            "up through a link",
            vec![
                link(EntryType::Symlink, "d/e/l", "../.."),
                link(EntryType::Symlink, "m", "d/e/l/../.."),
            ],
            "may lead out",
        ),
        ("hard link out", vec![link(EntryType::Link, "l", "../x")], "is a hard link to what"),
        (
            "hard link absolute",
            vec![link(EntryType::Link, "l", "/etc/passwd")],
            "is a hard link to what",
        ),
        (
            "hard link ahead",
            vec![link(EntryType::Link, "l", "x"), file("x", "")],
            "is a hard link to what",
        ),
        (
            "hard link to a link",
            vec![link(EntryType::Symlink, "s", "x"), link(EntryType::Link, "l", "s")],
            "is a hard link to what",
        ),
        ("character device", vec![special(EntryType::Char, "c")], "is neither file"),
        ("block device", vec![special(EntryType::Block, "b")], "is neither file"),
        ("fifo", vec![special(EntryType::Fifo, "f")], "is neither file"),
        ("twice", vec![file("x", "1"), file("x", "2")], "comes twice, and differs"),
        ("shorter", vec![file("x", "12"), file("x", "1")], "comes twice, and differs"),
        ("longer", vec![file("x", "1"), file("x", "12")], "comes twice, and differs"),
        (
            "link over file",
            vec![file("x", "1"), link(EntryType::Symlink, "x", "y")],
            "comes twice, and differs",
        ),
        ("file over link", vec![link(EntryType::Symlink, "x", "y"), file("x", "1")], "comes twice"),
        ("file as folder", vec![file("x", "1"), file("x/y", "1")], "comes twice, and differs"),
        ("folder as file", vec![file("x/y", "1"), file("x", "1")], "comes twice, and differs"),
        ("no name", vec![file("./", "")], "has no name"),
    ];
    for (what, entries, reason) in table {
        let folder = tempfile::tempdir().unwrap();
        let into = folder.path().join("deep/into");
        // A trailing slash makes a folder of a file, so that one is no error.
        match extract(&tar_gz(&entries), "x-1.tar.gz", &into) {
            Ok(_) => assert_eq!(what, "no name"),
            Err(error) => {
                let text = error.to_string();
                assert!(matches!(error, Error::Sdist(SdistError::Entry { .. })), "{what}: {text}");
                assert!(text.contains(reason), "{what}: {text}");
            }
        }
        let outside: Vec<_> = walkdir::WalkDir::new(folder.path())
            .into_iter()
            .map(|entry| entry.unwrap().into_path())
            .filter(|path| !path.starts_with(&into) && !into.starts_with(path))
            .collect();
        assert_eq!(outside, Vec::<std::path::PathBuf>::new(), "{what}");
    }
}

#[test]
fn cut_damaged_and_unknown_archives_are_refused() {
    let good = tar_gz(&[file("d/x", "content")]);
    let folder = tempfile::tempdir().unwrap();
    for cut in [0, 5, good.len() / 2, good.len() - 1] {
        let into = folder.path().join(format!("cut{cut}"));
        let error = extract(&good[..cut], "x-1.tar.gz", &into).unwrap_err();
        assert!(matches!(error, Error::Sdist(SdistError::Unreadable { .. })), "{cut}: {error}");
    }
    let error = extract(b"BZh9", "x-1.tar.bz2", folder.path()).unwrap_err();
    assert!(matches!(error, Error::Sdist(SdistError::Kind { .. })), "{error}");
    let store = store(&folder);
    let digest = store.put_blob(&good).unwrap();
    fs_err::write(store.blob_path(&digest), b"other").unwrap();
    let into = folder.path().join("damaged");
    let error = bundle::sdist::extract(&store, &digest, "x-1.tar.gz", &into).unwrap_err();
    assert!(matches!(error, Error::Base(hallmark::base::Error::DigestMismatch { .. })), "{error}");
    assert!(!into.exists());
}

#[test]
fn bombs_are_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let zeros = vec![0; 1 << 20];

    let mut header = tar::Header::new_gnu();
    header.set_path("zeros").unwrap();
    header.set_size(100 << 20);
    header.set_cksum();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(header.as_bytes()).unwrap();
    for _ in 0..100 {
        gzip.write_all(&zeros).unwrap();
    }
    let bytes = gzip.finish().unwrap();
    let error = extract(&bytes, "x-1.tar.gz", &folder.path().join("gz")).unwrap_err();
    assert!(matches!(error, Error::Sdist(SdistError::Bomb { .. })), "{error}");

    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for index in 0..4 {
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file(format!("zeros{index}"), options).unwrap();
        for _ in 0..25 {
            zip.write_all(&zeros).unwrap();
        }
    }
    let bytes = zip.finish().unwrap().into_inner();
    let error = extract(&bytes, "x-1.zip", &folder.path().join("zip")).unwrap_err();
    assert!(matches!(error, Error::Sdist(SdistError::Bomb { .. })), "{error}");
}

#[test]
fn zip_sdists_are_unpacked_by_the_same_rules() {
    let options = |mode| zip::write::SimpleFileOptions::default().unix_permissions(mode);
    let build = |names: &[(&str, u32)]| {
        let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, mode) in names {
            zip.start_file(*name, options(*mode)).unwrap();
            zip.write_all(name.as_bytes()).unwrap();
        }
        zip.finish().unwrap().into_inner()
    };
    let folder = tempfile::tempdir().unwrap();
    let into = folder.path().join("good");
    let bytes = build(&[("demo-1.0/setup.py", 0o600), ("demo-1.0/run", 0o750)]);
    let top = extract(&bytes, "demo-1.0.zip", &into).unwrap();
    assert_eq!(top, into.join("demo-1.0"));
    assert_eq!(fs_err::read(top.join("setup.py")).unwrap(), b"demo-1.0/setup.py");
    let mode = |name: &str| fs_err::metadata(top.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!([mode("setup.py"), mode("run")], [0o644, 0o755]);

    for (index, name) in ["../evil", "/abs/evil", "d/../../evil", "d\\evil"].iter().enumerate() {
        let into = folder.path().join(format!("bad{index}"));
        // The writer may refuse or rewrite such names, so they are patched in, of the same length.
        let plain = "x".repeat(name.len());
        let mut bytes = build(&[(plain.as_str(), 0o644)]);
        let places: Vec<usize> = (0..bytes.len() - plain.len())
            .filter(|at| &bytes[*at..*at + plain.len()] == plain.as_bytes())
            .collect();
        for at in [places[0], *places.last().unwrap()] {
            bytes[at..at + name.len()].copy_from_slice(name.as_bytes());
        }
        let error = extract(&bytes, "x-1.zip", &into).unwrap_err();
        assert!(matches!(error, Error::Sdist(SdistError::Entry { .. })), "{name}: {error}");
    }

    // Two entries of one name: the second one's name is patched.
    let mut bytes = build(&[("twice1", 0o644), ("twice2", 0o644)]);
    for at in 0..bytes.len() - 6 {
        if &bytes[at..at + 6] == b"twice2" {
            bytes[at + 5] = b'1';
        }
    }
    let error = extract(&bytes, "x-1.zip", &folder.path().join("twice")).unwrap_err();
    assert!(error.to_string().contains("comes twice"), "{error}");
}
