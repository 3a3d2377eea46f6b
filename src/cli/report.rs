//! `hallmark report`: verdicts, causes, runs, logs and sizes of a split as one HTML file.

use std::path::{Path, PathBuf};

use super::settings::Settings;
use super::{exit, table};
use crate::base::files::write_output;
use crate::pipeline::{self, InstanceVerdict};
use crate::{manifest, report};

/// Write an HTML report of gold runs: verdicts, causes, test by run, durations, ends of logs, image sizes
///
/// It is one file that needs no network and no other file. Nothing is run: everything comes from a manifest and from the run
/// records in the store; what the store lacks is said in the report. The verdicts are also printed as a table.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Manifest that `hallmark run` or `hallmark export` wrote, or a split whose `<SPLIT>.manifest.json` is in the working folder
    #[arg(value_name = "MANIFEST|SPLIT")]
    manifest: PathBuf,
    /// Where the report is written [default: `<SPLIT>.report.html` in the working folder]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, settings: &Settings) -> anyhow::Result<u8> {
    let path = found(&args.manifest, settings)?;
    let bytes = fs_err::read(&path).map_err(pipeline::Error::from)?;
    let manifest =
        manifest::parse(&path.display().to_string(), &bytes).map_err(pipeline::Error::from)?;
    let output = args.output.as_ref().map(|path| settings.output_file(path)).transpose()?;
    let store = settings.open_store()?;
    let _in_use = store.lock_shared(&settings.cancel).map_err(pipeline::Error::from)?;
    let gathering = report::Gathering {
        store: &store,
        jobs: settings.jobs,
        reporter: &settings.reporter,
        cancel: &settings.cancel,
    };
    let input = report::gather(gathering, &manifest).map_err(pipeline::Error::from)?;
    let shown = args
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("{}.report.html", file_name(&input.split))));
    let output = output.map_or_else(|| settings.output_file(&shown), Ok)?;
    let page = report::html(&input);
    write_output(&output, page.as_bytes()).map_err(pipeline::Error::from)?;
    let absent: usize = input.instances.iter().map(|instance| instance.facts.absent.len()).sum();
    let verdicts: Vec<InstanceVerdict> = input
        .instances
        .into_iter()
        .map(|instance| InstanceVerdict {
            instance: instance.facts.id,
            lists: instance.facts.lists,
            verdict: instance.facts.verdict,
        })
        .collect();
    table::verdicts(settings.printer, &verdicts);
    settings.printer.record(
        "report",
        &serde_json::json!({ "path": shown, "bytes": page.len(), "absent-runs": absent }),
    );
    if absent > 0 {
        settings.printer.note(&format!(
            "{absent} of the manifest's runs are not in this store: the report says which"
        ));
    }
    settings.printer.note(&format!("wrote {}", shown.display()));
    Ok(exit::OK)
}

/// The manifest: the named file, or the one that `hallmark run` writes for the named split.
fn found(named: &Path, settings: &Settings) -> anyhow::Result<PathBuf> {
    let of_split = PathBuf::from(format!("{}.manifest.json", named.display()));
    if !settings.working_dir().join(named).is_file()
        && settings.working_dir().join(&of_split).is_file()
    {
        return settings.input_file(&of_split);
    }
    settings.input_file(named)
}

/// A split's name as part of a file's name: it may have come as a path.
fn file_name(split: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' };
    let name: String = split.chars().take(100).map(plain).collect();
    name.trim_start_matches('.').to_owned()
}
