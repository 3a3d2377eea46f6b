//! What a finished container says: its stream and its output, read into an outcome of the run.

use super::Error;
use super::apply::{last_lines, tail};
use super::plan::RunPlan;
use super::record::{Phase, RunOutcome};
use crate::results::{
    Disagreement, Fault, HARD_LIMIT_SIGNAL, Printed, Report, cross_check, read_report,
};
use crate::runtime::{ExitStatus, RunLog};

/// The totals are at the end of the output; a test may have printed gigabytes before.
const OUTPUT_TAIL: u64 = 1 << 20;
/// Longest stream that is read, which a hostile run decides and memory must hold: more than a million tests.
pub(crate) const REPORT_LIMIT: u64 = 256 << 20;

/// Reads the results of a test command.
pub(crate) fn read_run(
    log: &RunLog,
    plan: &RunPlan<'_>,
    stream: &[u8],
    nonce: &str,
) -> Result<(RunOutcome, Report), Error> {
    let mut report = read_report(stream, nonce.as_bytes())?;
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
    if report.python.is_none() && report.faults.is_empty() {
        return Ok(RunOutcome::EnvError { reason: format!("{}: {}", ended(log), last(log)?) });
    }
    let status = match log.status {
        ExitStatus::Exited(code) => Some(code),
        ExitStatus::Signaled(_) => None,
    };
    let (stdout, stderr) = (tail(&log.stdout, OUTPUT_TAIL)?, tail(&log.stderr, OUTPUT_TAIL)?);
    let printed = Printed { stdout: &stdout, stderr: &stderr };
    let problems = cross_check(report, plan.spec.test.parser, printed, status);
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
