//! The command line as clap sees it: one `Args` struct a verb, in the verb's file.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use super::runtime::Choice;
use super::{
    audit, build, bundle, collect, doctor, exit, export, gc, load, lock, push, report, run, verify,
};

/// Reproducible environments and images for SWE-bench-like tasks, with proven gold-run stability
#[derive(Debug, Parser)]
#[command(name = "hallmark", version, after_help = exit::TABLE, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Options of every verb.
#[derive(Debug, clap::Args)]
pub(crate) struct Global {
    /// Folder with `specs/`, `lockfiles/` and `images/` [default: the nearest one above the working folder]
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "HALLMARK_PROJECT",
        hide_env_values = true
    )]
    pub(crate) project: Option<PathBuf>,
    /// Folder of blobs, layers and run records [default: the user's cache folder]
    #[arg(long, global = true, value_name = "DIR", env = "HALLMARK_STORE", hide_env_values = true)]
    pub(crate) store: Option<PathBuf>,
    /// Folder of work in progress, on a local disk [default: `scratch` in the store]
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "HALLMARK_SCRATCH",
        hide_env_values = true
    )]
    pub(crate) scratch: Option<PathBuf>,
    /// Folder of git repositories (`<owner>__<name>.git`) for rows that come from git
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "HALLMARK_MIRRORS",
        hide_env_values = true
    )]
    pub(crate) mirrors: Option<PathBuf>,
    /// Address of the Docker daemon: unix:///path or tcp://host:port [default: as Docker's own client]
    #[arg(
        long,
        global = true,
        value_name = "ADDRESS",
        env = "DOCKER_HOST",
        hide_env_values = true
    )]
    pub(crate) docker_host: Option<String>,
    /// Use no network: whatever is missing is an error
    #[arg(long, global = true)]
    pub(crate) offline: bool,
    /// What makes containers
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        env = "HALLMARK_RUNTIME",
        hide_env_values = true,
        default_value = "auto"
    )]
    pub(crate) runtime: Choice,
    /// How many builds and runs go on at once [default: the number of cores]
    #[arg(long, short, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Write JSON lines to stdout instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Show no progress
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Run(run::Args),
    Lock(lock::Args),
    #[command(subcommand)]
    Bundle(bundle::Bundle),
    Build(build::Args),
    Collect(collect::Args),
    Verify(verify::Args),
    Export(export::Args),
    Load(load::Args),
    Push(push::Args),
    Audit(audit::Args),
    Report(report::Args),
    Doctor(doctor::Args),
    Gc(gc::Args),
}

/// Which instances of which split.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Selection {
    /// Split: a file of rows, or a name for `images/<NAME>.rows.jsonl`
    pub(crate) split: String,
    /// Only these instances; may be given several times
    #[arg(long = "instance", short = 'i', value_name = "ID")]
    pub(crate) instances: Vec<String>,
}
