//! One wheel into a tree.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::path::Path;

use super::record::{self, Row, RowHash, RowHasher};
use super::scripts;
use crate::base::{Digest, HashingWriter};
use crate::build::Error;
use crate::resolve::python::{Archive, Entry, Scheme, WheelName, normalize, same_version};

/// A distribution in its tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Normalised name.
    pub name: String,
    /// Version, as the wheel's name has it.
    pub version: String,
    /// Absolute paths inside the image, sorted.
    pub files: Vec<String>,
}

/// Where a file of the archive goes.
struct Planned<'a> {
    entry: &'a Entry,
    row: Row,
    is_script: bool,
}

/// A file of a wheel that is at fault.
struct Fault {
    problem: String,
}

impl<T: Into<String>> From<T> for Fault {
    fn from(problem: T) -> Self {
        Self { problem: problem.into() }
    }
}

/// Unpacks the wheel at `path`, which is called `file`, below `root`: a path `/usr/...` of the scheme becomes `root/usr/...`.
/// Files get 0644 or 0755; their times are the caller's.
pub fn unpack(path: &Path, file: &str, scheme: &Scheme, root: &Path) -> Result<Installed, Error> {
    let invalid = |problem: String| Error::Invalid {
        what: file.to_owned(),
        problem,
        hint: Some(
            "put the package into `no-binary`, so that its sdist is built instead".to_owned(),
        ),
    };
    let name = WheelName::parse(file).ok_or_else(|| invalid("not a wheel's name".to_owned()))?;
    let archive = Archive::open(path).map_err(|error| invalid(error.to_string()))?;
    let plan = Plan::new(&archive, &name, scheme).map_err(|fault| invalid(fault.problem))?;
    plan.write(&archive, root, scheme).map_err(|error| match error {
        Error::Base(crate::base::Error::Io(error))
            if error.kind() == std::io::ErrorKind::InvalidData =>
        {
            invalid(error.to_string())
        }
        other => other,
    })
}

/// What becomes of each file, decided before anything is written.
struct Plan<'a> {
    name: String,
    version: String,
    /// Folder that RECORD's paths start from.
    library: String,
    /// Path of RECORD itself, below `library`.
    record: String,
    /// By absolute target.
    files: BTreeMap<String, Planned<'a>>,
    entry_points: Vec<scripts::EntryPoint>,
}

impl<'a> Plan<'a> {
    fn new(archive: &'a Archive, name: &WheelName, scheme: &Scheme) -> Result<Self, Fault> {
        for entry in &archive.entries {
            check_path(&entry.name)?;
            if entry.is_symlink() {
                return Err(format!("`{}` is a symbolic link", entry.name).into());
            }
        }
        let info = dist_info(archive, name)?;
        let text = |file: &str| -> Result<String, Fault> {
            let path = format!("{info}/{file}");
            let entry = archive.find(&path).ok_or_else(|| format!("`{path}` is missing"))?;
            let bytes = archive.read(entry).map_err(|error| error.to_string())?;
            // METADATA of old wheels is not always UTF-8; only its ASCII fields are read.
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        let is_pure = read_wheel(&text("WHEEL")?)?;
        check_metadata(&text("METADATA")?, name)?;
        let rows =
            record::parse(&text("RECORD")?).map_err(|problem| format!("RECORD: {problem}"))?;
        check_rows(archive, &rows, &info)?;
        let entry_points = match archive.find(&format!("{info}/entry_points.txt")) {
            Some(_) => scripts::parse_entry_points(&text("entry_points.txt")?)?,
            None => Vec::new(),
        };

        let library = if is_pure { &scheme.purelib } else { &scheme.platlib };
        let data = format!("{}.data/", info.strip_suffix(".dist-info").unwrap_or(&info));
        let names: BTreeSet<&str> =
            archive.entries.iter().map(|entry| entry.name.as_str()).collect();
        let mut files = BTreeMap::new();
        for entry in &archive.entries {
            if is_signature(&entry.name, &info) || is_foreign_bytecode(&entry.name, &names) {
                continue;
            }
            let mut is_script = false;
            let target = match entry.name.strip_prefix(&data) {
                None => format!("{library}/{}", entry.name),
                Some(inner) => {
                    let (key, rest) = inner
                        .split_once('/')
                        .ok_or_else(|| format!("`{}` has no install path", entry.name))?;
                    let folder = match key {
                        "purelib" => scheme.purelib.clone(),
                        "platlib" => scheme.platlib.clone(),
                        "data" => scheme.data.clone(),
                        "headers" => format!("{}/{}", scheme.headers, name.name),
                        "scripts" => {
                            is_script = true;
                            if entry_points.iter().any(|point| point.name == rest) {
                                continue;
                            }
                            scheme.scripts.clone()
                        }
                        _ => {
                            return Err(
                                format!("`{}` has an unknown install path", entry.name).into()
                            );
                        }
                    };
                    format!("{folder}/{rest}")
                }
            };
            let row = rows[&entry.name].clone();
            if let Some(other) = files.insert(target.clone(), Planned { entry, row, is_script }) {
                let Entry { name, .. } = other.entry;
                return Err(format!("`{name}` and `{}` both become {target}", entry.name).into());
            }
        }
        let record = format!("{info}/RECORD");
        let plan = Self {
            name: normalize(&name.name),
            version: name.version.clone(),
            library: library.clone(),
            record,
            files,
            entry_points,
        };
        plan.check_folders(scheme)?;
        Ok(plan)
    }

    /// No file may also be the folder of another.
    fn check_folders(&self, scheme: &Scheme) -> Result<(), Fault> {
        let scripts =
            self.entry_points.iter().map(|point| format!("{}/{}", scheme.scripts, point.name));
        let targets: BTreeSet<String> = self.files.keys().cloned().chain(scripts).collect();
        for target in &targets {
            let mut folder = target.as_str();
            while let Some((parent, _)) = folder.rsplit_once('/') {
                if targets.contains(parent) {
                    return Err(format!("{parent} is a file and the folder of {target}").into());
                }
                folder = parent;
            }
        }
        Ok(())
    }

    fn write(&self, archive: &Archive, root: &Path, scheme: &Scheme) -> Result<Installed, Error> {
        let mut written = BTreeMap::new();
        for (target, planned) in &self.files {
            let path = below(root, target);
            let file = if planned.is_script {
                write_script(archive, planned, &path, &scheme.python)?
            } else {
                copy(archive, planned, &path)?
            };
            written.insert(target.clone(), file);
        }
        for point in &self.entry_points {
            let target = format!("{}/{}", scheme.scripts, point.name);
            let text = scripts::entry_point_script(point, &scheme.python);
            write_file(&below(root, &target), text.as_bytes(), true)?;
            written.insert(target, (Digest::of(&text), text.len() as u64));
        }
        let rows =
            written.iter().map(|(target, row)| (relative(target, &self.library), *row)).collect();
        let target = format!("{}/{}", self.library, self.record);
        write_file(&below(root, &target), record::write(&rows, &self.record).as_bytes(), false)?;
        let mut files: Vec<String> = written.into_keys().collect();
        files.push(target);
        files.sort();
        Ok(Installed { name: self.name.clone(), version: self.version.clone(), files })
    }
}

fn below(root: &Path, target: &str) -> std::path::PathBuf {
    root.join(target.trim_start_matches('/'))
}

/// A plain relative path: no `..`, no empty or `.` part, not absolute.
fn check_path(path: &str) -> Result<(), Fault> {
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(format!("`{path}` leaves the wheel's own folder").into());
    }
    Ok(())
}

/// The one `.dist-info` folder, which must have the wheel's name and version.
fn dist_info(archive: &Archive, name: &WheelName) -> Result<String, Fault> {
    let folders: BTreeSet<&str> = archive
        .entries
        .iter()
        .filter_map(|entry| entry.name.split_once('/'))
        .map(|(folder, _)| folder)
        .filter(|folder| folder.ends_with(".dist-info"))
        .collect();
    let folders: Vec<&str> = folders.into_iter().collect();
    let folder = match folders[..] {
        [folder] => folder,
        [] => return Err("no .dist-info folder".into()),
        _ => return Err(format!("more than one .dist-info folder: {}", folders.join(", ")).into()),
    };
    let agrees = folder
        .strip_suffix(".dist-info")
        .and_then(|stem| stem.rsplit_once('-'))
        .is_some_and(|(own, version)| {
            normalize(own) == normalize(&name.name) && same_version(version, &name.version)
        });
    if !agrees {
        return Err(format!("`{folder}` is not of {} {}", name.name, name.version).into());
    }
    Ok(folder.to_owned())
}

/// Whether the root is purelib.
fn read_wheel(text: &str) -> Result<bool, Fault> {
    let field = |name: &str| field(text, name);
    let version = field("Wheel-Version").ok_or("WHEEL has no Wheel-Version")?;
    if version.split('.').next() != Some("1") {
        return Err(format!("the wheel's format has version {version}, known is 1").into());
    }
    match field("Root-Is-Purelib").as_deref() {
        Some("true" | "True") => Ok(true),
        Some("false" | "False") => Ok(false),
        _ => Err("WHEEL does not say whether its root is purelib".into()),
    }
}

fn check_metadata(text: &str, name: &WheelName) -> Result<(), Fault> {
    let own = field(text, "Name").ok_or("METADATA has no name")?;
    if normalize(&own) != normalize(&name.name) {
        return Err(format!("METADATA is of `{own}`, the wheel's name says `{}`", name.name).into());
    }
    Ok(())
}

/// The first header field of this name, before the first empty line.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim().to_owned())
}

/// RECORD and its signatures, which have no row that could be checked.
fn is_signature(path: &str, info: &str) -> bool {
    path.strip_prefix(info)
        .is_some_and(|rest| matches!(rest, "/RECORD" | "/RECORD.jws" | "/RECORD.p7s"))
}

/// `a/__pycache__/b.cpython-39.pyc` beside `a/b.py`.
fn is_foreign_bytecode(path: &str, names: &BTreeSet<&str>) -> bool {
    let Some((folder, file)) = path.rsplit_once('/') else { return false };
    let Some(parent) = folder.strip_suffix("__pycache__") else { return false };
    Path::new(file).extension().is_some_and(|extension| extension == "pyc")
        && file
            .split('.')
            .next()
            .is_some_and(|stem| names.contains(format!("{parent}{stem}.py").as_str()))
}

/// RECORD lists every file, and nothing else.
fn check_rows(archive: &Archive, rows: &BTreeMap<String, Row>, info: &str) -> Result<(), Fault> {
    for entry in &archive.entries {
        if is_signature(&entry.name, info) {
            continue;
        }
        match rows.get(&entry.name) {
            None => return Err(format!("RECORD does not list `{}`", entry.name).into()),
            Some(Row { hash: RowHash::Absent, .. }) => {
                return Err(format!("RECORD has no hash of `{}`", entry.name).into());
            }
            Some(Row { size: Some(size), .. }) if *size != entry.size => {
                return Err(format!(
                    "`{}`: RECORD says {size} bytes, the archive holds {}",
                    entry.name, entry.size
                )
                .into());
            }
            Some(_) => {}
        }
    }
    let unknown =
        rows.keys().find(|path| !is_signature(path, info) && archive.find(path).is_none());
    match unknown {
        Some(path) => Err(format!("RECORD lists `{path}`, which the wheel does not hold").into()),
        None => Ok(()),
    }
}

/// `target` as RECORD names it: relative to the folder that holds `.dist-info`.
fn relative(target: &str, library: &str) -> String {
    let (mut to, mut from) = (target.split('/').peekable(), library.split('/').peekable());
    while to.peek().is_some() && to.peek() == from.peek() {
        to.next();
        from.next();
    }
    let up = std::iter::repeat_n("..", from.count());
    up.chain(to).collect::<Vec<_>>().join("/")
}

fn create(path: &Path, executable: bool) -> Result<fs_err::File, Error> {
    use std::os::unix::fs::PermissionsExt as _;
    if let Some(folder) = path.parent() {
        fs_err::create_dir_all(folder)?;
    }
    let file = fs_err::OpenOptions::new().write(true).create_new(true).open(path)?;
    let mode = if executable { 0o755 } else { 0o644 };
    file.file().set_permissions(std::fs::Permissions::from_mode(mode))?;
    Ok(file)
}

fn write_file(path: &Path, bytes: &[u8], executable: bool) -> Result<(), Error> {
    create(path, executable)?.write_all(bytes)?;
    Ok(())
}

fn lying(entry: &Entry, (expected, actual): &(String, String)) -> Error {
    std::io::Error::new(
        std::io::ErrorKind::InvalidData,
        format!("`{}`: RECORD says {expected}, the contents are {actual}", entry.name),
    )
    .into()
}

/// Copies a file and checks it against its row.
fn copy(archive: &Archive, planned: &Planned<'_>, path: &Path) -> Result<(Digest, u64), Error> {
    let mut reader = archive.reader(planned.entry)?;
    let mut out = HashingWriter::new(create(path, planned.entry.is_executable())?);
    // SHA-256 is computed for our RECORD anyway; a row with another hash needs its own.
    let mut other = match &planned.row.hash {
        RowHash::Sha256(_) => None,
        hash => Some(RowHasher::new(hash)),
    };
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = reader.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        out.write_all(&buffer[..read])?;
        if let Some(hasher) = &mut other {
            hasher.update(&buffer[..read]);
        }
    }
    let (_, digest, size) = out.finish();
    let checked = match (other, &planned.row.hash) {
        (Some(hasher), _) => hasher.check(),
        (None, RowHash::Sha256(expected)) if hex::encode(expected) != digest.hex() => {
            Err((hex::encode(expected), digest.hex()))
        }
        _ => Ok(()),
    };
    checked.map_err(|pair| lying(planned.entry, &pair))?;
    Ok((digest, size))
}

/// Copies a script, with the interpreter's path where it asks for one; always executable.
fn write_script(
    archive: &Archive,
    planned: &Planned<'_>,
    path: &Path,
    python: &str,
) -> Result<(Digest, u64), Error> {
    let bytes = archive.read(planned.entry)?;
    let mut hasher = RowHasher::new(&planned.row.hash);
    hasher.update(&bytes);
    hasher.check().map_err(|pair| lying(planned.entry, &pair))?;
    let bytes = scripts::rewrite_shebang(&bytes, python).unwrap_or(bytes);
    write_file(path, &bytes, true)?;
    Ok((Digest::of(&bytes), bytes.len() as u64))
}
