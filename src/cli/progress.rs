//! Progress for people: bars on a terminal, plain lines elsewhere, JSON lines on request.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::printer::Printer;
use crate::base::progress::{Event, Outcome, Reporter, TaskId};
use crate::report::visible;

/// Stages whose start and end are not worth a plain line each: there are hundreds.
const QUIET_STAGES: [&str; 4] = ["blob", "file", "layer", "wheel"];

/// One bar per running task.
pub(crate) struct Bars {
    multi: MultiProgress,
    bars: Mutex<BTreeMap<TaskId, ProgressBar>>,
}

impl Bars {
    pub(crate) fn new() -> Self {
        Self { multi: MultiProgress::new(), bars: Mutex::default() }
    }
}

impl Reporter for Bars {
    fn report(&self, event: Event) {
        let mut bars = self.bars.lock().expect("no holder panics");
        match event {
            Event::Started { task, stage, name, total } => {
                let bar = self.multi.add(ProgressBar::no_length());
                let style = if let Some(total) = total {
                    bar.set_length(total);
                    ProgressStyle::with_template(
                        "{prefix:>12} {msg:40!} [{bar:24}] {bytes:>10}/{total_bytes} {elapsed:>4}",
                    )
                } else {
                    ProgressStyle::with_template("{prefix:>12} {msg:40!} {spinner} {elapsed:>4}")
                };
                bar.set_style(style.expect("the template is constant").progress_chars("=> "));
                bar.set_prefix(stage);
                bar.set_message(visible(&name).into_owned());
                bar.enable_steady_tick(Duration::from_millis(200));
                bars.insert(task, bar);
            }
            Event::Advanced { task, by } => {
                if let Some(bar) = bars.get(&task) {
                    bar.inc(by);
                }
            }
            Event::Finished { task, outcome, note } => {
                if let Some(bar) = bars.remove(&task) {
                    let line = finished(
                        &bar.prefix(),
                        &bar.message(),
                        outcome,
                        note.as_deref(),
                        bar.elapsed(),
                    );
                    bar.finish_and_clear();
                    if let Some(line) = line {
                        // Errors of the terminal itself have nowhere to go.
                        let _ = self.multi.println(line);
                    }
                }
            }
            Event::Warned { message, hint } => {
                let _ = self.multi.println(warning(&message, hint.as_deref()));
            }
        }
    }
}

fn finished(
    stage: &str,
    name: &str,
    outcome: Outcome,
    note: Option<&str>,
    elapsed: Duration,
) -> Option<String> {
    if QUIET_STAGES.contains(&stage) || outcome == Outcome::Cached {
        return None;
    }
    let seconds = elapsed.as_secs_f64();
    let note = note.map(|note| format!("  {}", visible(note))).unwrap_or_default();
    let end = if outcome == Outcome::Failed { "FAILED" } else { "" };
    let name = visible(name);
    Some(format!("{stage:>12} {name} {seconds:.1} s{note} {end}").trim_end().to_owned())
}

/// Notes and warnings may quote a container's output, which shall not steer a terminal.
fn warning(message: &str, hint: Option<&str>) -> String {
    let message = message.split('\n').map(visible).collect::<Vec<_>>().join("\n");
    hint.map_or_else(
        || format!("warning: {message}"),
        |hint| format!("warning: {message}\n   hint: {}", visible(hint)),
    )
}

/// One line at each end of a task, on stderr.
pub(crate) struct Lines {
    printer: Printer,
    running: Mutex<BTreeMap<TaskId, (&'static str, String, crate::base::clock::Stopwatch)>>,
}

impl Lines {
    pub(crate) fn new(printer: Printer) -> Self {
        Self { printer, running: Mutex::default() }
    }
}

impl Reporter for Lines {
    fn report(&self, event: Event) {
        let mut running = self.running.lock().expect("no holder panics");
        match event {
            Event::Started { task, stage, name, .. } => {
                running.insert(task, (stage, name, crate::base::clock::Stopwatch::start()));
            }
            Event::Advanced { .. } => {}
            Event::Finished { task, outcome, note } => {
                if let Some((stage, name, watch)) = running.remove(&task)
                    && let Some(line) =
                        finished(stage, &name, outcome, note.as_deref(), watch.elapsed())
                {
                    self.printer.note(&line);
                }
            }
            Event::Warned { message, hint } => {
                self.printer.note(&warning(&message, hint.as_deref()));
            }
        }
    }
}

/// Every event as a JSON line on stdout.
pub(crate) struct JsonLines(pub(crate) Printer);

impl Reporter for JsonLines {
    fn report(&self, event: Event) {
        if !matches!(event, Event::Advanced { .. }) {
            self.0.record("progress", &event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_container_printed_steers_no_terminal() {
        let second = Duration::from_secs(1);
        let line = finished("run", "a\u{1b}[2J", Outcome::Failed, Some("x\u{1b}]0;t\u{7}"), second);
        let text = line.unwrap() + &warning("w\r\u{1b}[1A", Some("h\u{9b}1m"));
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        assert!(text.contains("FAILED") && text.contains("hint: h"), "{text:?}");
    }
}
