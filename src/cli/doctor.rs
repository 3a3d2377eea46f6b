//! `hallmark doctor`: what this host lacks, and how to mend it.

use super::exit;
use super::runtime::launcher;
use super::settings::Settings;
use crate::base::Store;
use crate::pipeline;
use crate::runtime::docker::{DaemonError, Docker};
use crate::runtime::embedded::{Row, Status, probe, trial};
use crate::runtime::{Error, Gap};

/// Say what this host lacks for builds and runs, and how to mend it
///
/// Each row is a real probe, not a look at version numbers. Ends with exit code 6 when containers cannot run here.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, settings: &Settings) -> anyhow::Result<u8> {
    let store = settings.open_store()?;
    let mut rows = probe(&store, &launcher());
    rows.push(daemon(settings, &store));
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

/// Whether a daemon could make the containers. None is needed unless it is asked for.
fn daemon(settings: &Settings, store: &Store) -> Row {
    let name = "daemon";
    let tried = || -> Result<_, pipeline::Error> {
        let engine = settings.engine()?;
        let place = format!("{} at {}", engine.daemon(), engine.endpoint());
        let docker = Docker::new(store, engine, &settings.cancel)?;
        Ok((place, trial(&docker, store)?))
    };
    let wanted = settings.wants_daemon();
    match tried() {
        Ok((place, log)) if log.gaps.contains(&Gap::BlackHole) => Row {
            name,
            status: Status::Gap,
            detail: format!("{place} makes containers, but without a black hole"),
            fix: Some("load the kernel's module veth".to_owned()),
        },
        Ok((place, _)) => {
            Row { name, status: Status::Ok, detail: format!("{place} makes containers"), fix: None }
        }
        Err(pipeline::Error::Runtime(Error::Daemon(error @ DaemonError::NoDaemon { .. })))
            if !wanted =>
        {
            Row {
                name,
                status: Status::Note,
                detail: format!("{error}; only --runtime docker needs one"),
                fix: None,
            }
        }
        Err(error) => Row {
            name,
            status: if wanted { Status::Missing } else { Status::Gap },
            detail: error.to_string(),
            fix: Some(error.hint().unwrap_or_else(|| "use --runtime embedded".to_owned())),
        },
    }
}
