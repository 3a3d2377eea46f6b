//! What a finished container says: its stream and its output, read into an outcome of the run.

use std::path::Path;

use super::Error;
use super::apply::{last_lines, tail};
use super::plan::RunPlan;
use super::record::{Phase, RunOutcome};
use crate::results::text::{telling, text_report};
use crate::results::{
    Disagreement, Fault, HARD_LIMIT_SIGNAL, Printed, Report, Source, cross_check, read_report,
};
use crate::runtime::{ExitStatus, RunLog};
use crate::spec::Parser;

/// The totals are at the end of the output; a test may have printed gigabytes before.
const OUTPUT_TAIL: u64 = 1 << 20;
/// Most that is read of a text.
const TEXT_LIMIT: u64 = 64 << 20;
/// Longest stream that is read, which a hostile run decides and memory must hold: more than a million tests.
pub(crate) const REPORT_LIMIT: u64 = 256 << 20;

/// What the results of a command without a runner of ours are read from: the file that it wrote, or the end of what
/// it printed.
pub(crate) fn printed(log: &RunLog, parser: Parser, junit: &Path) -> Result<Vec<u8>, Error> {
    if parser == Parser::Junit {
        // The container is gone: nobody changes the file, which may be a link to somewhere.
        let is_file = fs_err::symlink_metadata(junit).is_ok_and(|metadata| metadata.is_file());
        return if is_file { tail(junit, TEXT_LIMIT) } else { Ok(Vec::new()) };
    }
    let (stdout, stderr) = (tail(&log.stdout, TEXT_LIMIT)?, tail(&log.stderr, TEXT_LIMIT)?);
    Ok(telling(parser, &stdout, &stderr).to_vec())
}

/// Reads the results of a test command, which its stream or its text holds.
pub(crate) fn read_run(
    log: &RunLog,
    plan: &RunPlan<'_>,
    source: Source,
    bytes: &[u8],
    nonce: &str,
) -> Result<(RunOutcome, Report), Error> {
    let mut report = match source {
        Source::Stream => read_report(bytes, nonce.as_bytes())?,
        Source::Text => text_report(plan.spec.test.parser, bytes),
    };
    if log.status == ExitStatus::Signaled(HARD_LIMIT_SIGNAL) {
        for id in &report.unfinished {
            if let Some(result) = report.tests.get_mut(id) {
                result.reason = Some("timeout: the test hung where no Python code runs".to_owned());
            }
        }
    }
    let outcome = outcome_of(log, plan, &report)?;
    Ok((outcome, report))
}

fn outcome_of(log: &RunLog, plan: &RunPlan<'_>, report: &Report) -> Result<RunOutcome, Error> {
    if log.timed_out {
        return Ok(RunOutcome::Timeout);
    }
    if log.disk_full {
        return Ok(RunOutcome::DiskFull);
    }
    if log.output_full {
        return Ok(RunOutcome::OutputFull);
    }
    // A child of a test may have been killed for memory; what counts is whether the runner lived on.
    if log.oom_killed && report.process_exit.is_none() {
        return Ok(RunOutcome::Oom);
    }
    let began = match report.source {
        Source::Stream => report.python.is_some() || !report.faults.is_empty(),
        Source::Text => report.totals.is_some() || !report.tests.is_empty(),
    };
    if !began {
        return Ok(RunOutcome::EnvError { reason: format!("{}: {}", ended(log), last(log)?) });
    }
    let problems =
        disagreements(report, plan.spec.test.parser, [&log.stdout, &log.stderr], log.status)?;
    if !problems.is_empty() {
        return Ok(RunOutcome::ParserError { problems });
    }
    let collected = report.collected.as_ref().is_some_and(|ids| !ids.is_empty());
    if report.tests.is_empty() && !(plan.phase == Phase::Collect && collected) {
        let reason = match report.collection_errors.iter().next() {
            Some((id, reason)) => format!("{id} could not be collected: {reason}"),
            None if !report.collection_skips.is_empty() => "every module was skipped".to_owned(),
            None if report.collected.as_ref().is_some_and(Vec::is_empty) => {
                "no test was collected".to_owned()
            }
            None => format!("{}: {}", ended(log), last(log)?),
        };
        return Ok(RunOutcome::EnvError { reason });
    }
    Ok(RunOutcome::Completed)
}

/// What the sources of a run disagree about; its files are of standard output and standard error.
pub(crate) fn disagreements(
    report: &Report,
    parser: Parser,
    [stdout, stderr]: [&Path; 2],
    status: ExitStatus,
) -> Result<Vec<Disagreement>, Error> {
    let status = match status {
        ExitStatus::Exited(code) => Some(code),
        ExitStatus::Signaled(_) => None,
    };
    let (stdout, stderr) = (tail(stdout, OUTPUT_TAIL)?, tail(stderr, OUTPUT_TAIL)?);
    Ok(cross_check(report, parser, Printed { stdout: &stdout, stderr: &stderr }, status))
}

fn ended(log: &RunLog) -> String {
    super::apply::how(log)
}

fn last(log: &RunLog) -> Result<String, Error> {
    let text = last_lines(log)?;
    Ok(text.lines().next_back().unwrap_or_default().to_owned())
}

/// A stream that nobody honest writes.
pub(crate) fn too_long(size: u64) -> RunOutcome {
    let problem = format!("the report has {size} bytes");
    let fault = Fault::Malformed { line: 0, problem };
    RunOutcome::ParserError { problems: vec![Disagreement::Stream { fault }] }
}
