//! From arguments to an exit code.

use std::process::ExitCode;

use clap::Parser as _;

use super::args::{Cli, Verb};
use super::printer::Printer;
use super::settings::Settings;
use super::{
    audit, build, bundle, collect, diagnostics, doctor, exit, export, gc, interrupt, load, lock,
    push, report, run, verify,
};
use crate::base::Cancel;

/// Runs the command line and returns its exit code (see [`exit`]).
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are data; clap writes them to stdout itself. A closed pipe is no error.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { exit::USAGE } else { exit::OK });
        }
    };
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let cancel = Cancel::new();
    let settings =
        interrupt::install(&cancel).and_then(|()| Settings::new(&cli.global, cancel.clone()));
    match settings.and_then(|settings| dispatch(cli.verb, &settings)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            Printer::error(&diagnostics::render(&error));
            let interrupted = cancel.is_cancelled();
            ExitCode::from(if interrupted {
                exit::INTERRUPTED
            } else {
                diagnostics::exit_code(&error)
            })
        }
    }
}

fn dispatch(verb: Verb, settings: &Settings) -> anyhow::Result<u8> {
    match verb {
        Verb::Run(args) => run::run(&args, settings),
        Verb::Lock(args) => lock::run(&args, settings),
        Verb::Bundle(command) => bundle::run(&command, settings),
        Verb::Build(args) => build::run(&args, settings),
        Verb::Collect(args) => collect::run(&args, settings),
        Verb::Verify(args) => verify::run(&args, settings),
        Verb::Load(args) => load::run(&args, settings),
        Verb::Export(args) => export::run(&args, settings),
        Verb::Push(args) => push::run(&args, settings),
        Verb::Audit(args) => audit::run(&args, settings),
        Verb::Report(args) => report::run(&args, settings),
        Verb::Doctor(args) => doctor::run(&args, settings),
        Verb::Gc(args) => gc::run(&args, settings),
    }
}
