//! The table of verdicts.

use super::printer::Printer;
use crate::pipeline::InstanceVerdict;

/// Prints one line an instance, aligned, with the rule that weighed most.
pub(crate) fn verdicts(printer: Printer, verdicts: &[InstanceVerdict]) {
    let width =
        verdicts.iter().map(|row| row.instance.len()).max().unwrap_or(0).max("instance".len());
    printer.line(&format!(
        "{:width$}  {:11}  {:>8}  {:>9}  {:>6}  why",
        "instance", "verdict", "pre+post", "f2p/p2p", "bound"
    ));
    for row in verdicts {
        printer.record("verdict", row);
        let verdict = &row.verdict;
        printer.line(&format!(
            "{:width$}  {:11}  {:>8}  {:>9}  {:>5.1}%  {}",
            row.instance,
            verdict.status.as_str(),
            format!("{}+{}", verdict.pre_runs, verdict.runs),
            format!("{}/{}", row.lists.fail_to_pass.len(), row.lists.pass_to_pass.len()),
            verdict.bound * 100.0,
            verdict.reasons.first().map_or("", |reason| reason.text.as_str()),
        ));
    }
    if !verdicts.is_empty() {
        printer.line(
            "bound: upper limit of the rate of failing gold runs, 95 % confidence, one-sided",
        );
    }
}
