//! `hallmark audit`: is a manifest true? Checked offline, from the store.

use std::path::PathBuf;

use super::settings::Settings;
use super::{exit, size};
use crate::manifest;
use crate::pipeline;

/// Check everything that a manifest names against the store, without a network
///
/// Blobs are hashed again, layers are unpacked to their diff IDs, image documents, records and logs are read again and verdicts are judged again
/// from the records. What could not be checked is listed apart from what was found wrong.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Manifest that `hallmark run` or `hallmark export` wrote
    manifest: PathBuf,
}

pub(crate) fn run(args: &Args, settings: &Settings) -> anyhow::Result<u8> {
    let path = settings.input_file(&args.manifest)?;
    let bytes = fs_err::read(path).map_err(pipeline::Error::from)?;
    let manifest = manifest::parse(&args.manifest.display().to_string(), &bytes)
        .map_err(pipeline::Error::from)?;
    let store = settings.open_store()?;
    let _in_use = store.lock_shared(&settings.cancel).map_err(pipeline::Error::from)?;
    let report =
        manifest::audit(&store, &manifest, &settings.cancel).map_err(pipeline::Error::from)?;
    settings.printer.record("audit", &report);
    for finding in &report.findings {
        settings.printer.line(&format!("WRONG  {}: {}", finding.place, finding.problem));
    }
    for unchecked in &report.unchecked {
        settings.printer.line(&format!("UNCHECKED  {}: {}", unchecked.place, unchecked.reason));
    }
    settings.printer.line(&format!(
        "{} checks over {}: {} wrong, {} could not be made",
        report.checks,
        size::format(report.bytes),
        report.findings.len(),
        report.unchecked.len()
    ));
    settings.printer.line(&format!("subject {}", manifest.digests.subject));
    Ok(if report.passed() { exit::OK } else { exit::CHECK_FAILED })
}
