//! `hallmark doctor`: what this host lacks, and how to mend it.

use super::exit;
use super::settings::{Settings, launcher};
use crate::runtime::embedded::{Status, probe};

/// Say what this host lacks for builds and runs, and how to mend it
///
/// Each row is a real probe, not a look at version numbers. Ends with exit code 6 when containers cannot run here.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, settings: &Settings) -> anyhow::Result<u8> {
    let store = settings.open_store()?;
    let rows = probe(&store, &launcher());
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    for row in &rows {
        settings.printer.record("probe", row);
        let status = match row.status {
            Status::Ok => "ok",
            Status::Gap => "LESS",
            Status::Missing => "BROKEN",
            Status::Note => "note",
        };
        settings.printer.line(&format!("{status:6}  {:width$}  {}", row.name, row.detail));
        if let Some(fix) = &row.fix {
            settings.printer.line(&format!("{:6}  {:width$}  fix: {fix}", "", ""));
        }
    }
    let client = settings.client()?;
    for (name, place) in [
        ("PyPI index", &client.config().pypi_index),
        ("Debian mirror", &client.config().debian_mirror),
        ("Debian snapshots", &client.config().debian_snapshot),
    ] {
        settings.printer.record(
            "address",
            &serde_json::json!({ "name": name, "address": place.address.to_string(), "from": place.from }),
        );
        settings
            .printer
            .line(&format!("ok      {name:width$}  {} (from {})", place.address, place.from));
    }
    let broken = rows.iter().any(|row| row.status == Status::Missing);
    Ok(if broken { exit::HOST } else { exit::OK })
}
