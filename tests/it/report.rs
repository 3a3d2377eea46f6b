//! The HTML report over records made by hand: what it says, that nothing in it can run or hide, its size, and how a browser takes it.

mod browser;
mod chromium;
mod gathered;
mod page;
mod sample;
mod size;

/// Writes a page where people can look at it, and a browser open it.
fn written(name: &str, page: &str) -> std::path::PathBuf {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    fs_err::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{name}.html"));
    fs_err::write(&path, page).unwrap();
    path
}
