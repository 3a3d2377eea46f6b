//! From the text of a policy to a [`Policy`]: every fault at once, contradictions with both keys and the way out.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Policy, Remedy};
use super::raw::{RawAdmission, RawPolicy, Share};
use crate::spec::{Count, Located, Place, Reader, SpecErrors, SpecFile, generate, nearest};
use crate::verify::bound::upper_bound;
use crate::verify::profile::Axis;

/// Every fault of a policy, with its place, a caret and the way out.
pub type PolicyErrors = SpecErrors;

/// More runs than anybody waits for.
const MOST_RUNS: u32 = 10_000;
/// Below this, "confidence" is the wrong word.
const LEAST_CONFIDENCE: f64 = 0.5;
/// What no machine holds still: it cannot be pinned.
const LOOSE: [Axis; 4] = [Axis::Clock, Axis::Cpu, Axis::Load, Axis::DirectoryOrder];

impl Policy {
    /// Names of the presets.
    pub const PRESETS: [&str; 4] = ["quick", "training", "benchmark", "release"];

    /// A preset.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "quick" => Some(Self::quick()),
            "training" => Some(Self::training()),
            "benchmark" => Some(Self::benchmark()),
            "release" => Some(Self::release()),
            _ => None,
        }
    }

    /// Parses a policy. `name` is its file's, which is shown in errors; without its ending it is the policy's name.
    pub fn parse(name: &str, text: &str) -> Result<Self, PolicyErrors> {
        let file = SpecFile::new(name, text);
        let mut reader = Reader::new();
        let (raw, sound): (RawPolicy, bool) = reader.file(&file);
        let policy = match raw.admission {
            Some(admission) if sound => Some(policy(&mut reader, short_name(name), admission)),
            None if sound => {
                let place = Reader::start_of(0);
                reader.missing(&place, "admission", "write a table `[admission]`");
                None
            }
            _ => None,
        };
        reader.finish(policy)
    }
}

/// The JSON schema of a policy's file.
pub fn policy_schema() -> serde_json::Value {
    generate::<RawPolicy>("Hallmark admission policy")
}

fn short_name(name: &str) -> &str {
    let file = name.rsplit('/').next().unwrap_or(name);
    let stem = file.strip_suffix(".toml").unwrap_or(file);
    stem.strip_suffix(".policy").unwrap_or(stem)
}

fn policy(reader: &mut Reader<'_>, name: &str, raw: Located<RawAdmission>) -> Policy {
    let Located { value: raw, place: _ } = raw;
    let mut policy = preset(reader, raw.preset.as_ref());
    name.clone_into(&mut policy.name);
    if let Some(Located { value: Share(confidence), place }) = &raw.confidence {
        if (LEAST_CONFIDENCE..1.0).contains(confidence) {
            policy.confidence = *confidence;
        } else {
            let hint = "write a number from 0.5 to below 1, such as 0.95";
            reader.fault(place, "`confidence` is out of range", hint);
        }
    }
    runs(reader, &mut policy, raw.runs.as_ref(), raw.bound.as_ref());
    if let Some(pre_runs) = count(reader, raw.pre_runs.as_ref(), "pre-runs", 1) {
        policy.pre_runs = pre_runs;
    }
    if let Some(max_probes) = count(reader, raw.max_probes.as_ref(), "max-probes", 0) {
        policy.max_probes = max_probes;
    }
    axes(reader, &mut policy, raw.axes.as_ref());
    for (key, flaky, target) in [
        ("flaky", &raw.flaky, &mut policy.flaky),
        ("flaky-fail-to-pass", &raw.flaky_fail_to_pass, &mut policy.flaky_fail_to_pass),
    ] {
        match flaky {
            Some(Located { value: Remedy::Pin, place }) => {
                let message = format!(
                    "`{key}` cannot be \"pin\": no condition explains what is flaky, so none can be held"
                );
                reader.fault(place, message, "write \"quarantine\" or \"reject\"");
            }
            Some(Located { value, .. }) => *target = *value,
            None => {}
        }
    }
    let sensitive = raw.sensitive.map(|table| table.value).unwrap_or_default();
    sensitivities(reader, &mut policy, &sensitive, raw.axes.is_some());
    if let Some(Located { value: Share(share), .. }) = &raw.max_quarantined {
        policy.max_quarantined = *share;
    }
    if let Some(Located { value, place }) = &raw.time_budget {
        if value.0 >= 1.0 {
            policy.time_budget = Some(value.0);
        } else {
            let hint = "write a duration from 1 s on, such as \"2 h\", or remove it";
            reader.fault(place, "`time-budget` leaves time for no run", hint);
        }
    }
    if let Some(Located { value, .. }) = raw.require_memory_limit {
        policy.require_memory_limit = value;
    }
    // Nothing may be set aside, and something is to be.
    if let Some(Located { value: Share(share), place }) = &raw.max_quarantined
        && *share <= 0.0
    {
        let flaky = raw.flaky.as_ref().filter(|flaky| flaky.value == Remedy::Quarantine);
        let aside = sensitive.iter().filter(|(_, held)| held.value == Remedy::Quarantine);
        let mut keys = flaky
            .map(|_| "flaky".to_owned())
            .into_iter()
            .chain(aside.map(|(axis, _)| format!("sensitive.{axis}")));
        if let Some(key) = keys.next() {
            let message = format!(
                "`max-quarantined` lets no test be set aside, and `{key}` sets tests aside"
            );
            let hint = format!("raise `max-quarantined`, or write `{key} = \"reject\"`");
            reader.fault(place, message, hint);
        }
    }
    policy
}

fn preset(reader: &mut Reader<'_>, name: Option<&Located<String>>) -> Policy {
    let Some(Located { value, place }) = name else { return Policy::default() };
    Policy::named(value).unwrap_or_else(|| {
        let hint = match nearest(value, &Policy::PRESETS) {
            Some(name) => format!("did you mean \"{name}\"?"),
            None => format!("the presets are: {}", Policy::PRESETS.join(", ")),
        };
        reader.fault(place, format!("there is no preset {value:?}"), hint);
        Policy::default()
    })
}

/// A whole number from `least` on.
fn count(
    reader: &mut Reader<'_>,
    raw: Option<&Located<Count>>,
    key: &str,
    least: u32,
) -> Option<u32> {
    let Located { value: Count(count), place } = raw?;
    let fits = u32::try_from(*count).ok().filter(|count| (least..=MOST_RUNS).contains(count));
    if fits.is_none() {
        let hint = format!("write a number from {least} to {MOST_RUNS}");
        reader.fault(place, format!("`{key}` is out of range"), hint);
    }
    fits
}

fn runs(
    reader: &mut Reader<'_>,
    policy: &mut Policy,
    runs: Option<&Located<Count>>,
    bound: Option<&Located<Share>>,
) {
    let stated = count(reader, runs, "runs", 1);
    if let Some(runs) = stated {
        policy.runs = runs;
    }
    let Some(Located { value: Share(bound), place }) = bound else { return };
    let Some(needed) = runs_for(*bound, policy.confidence) else {
        let message = format!("no number of runs up to {MOST_RUNS} shows a rate below this bound");
        reader.fault(place, message, "write a larger bound, such as 0.1");
        return;
    };
    match stated {
        None if runs.is_none() => policy.runs = needed,
        Some(stated) if stated < needed => {
            let message = format!(
                "`runs = {stated}` bounds the rate at {:.1} %, and `bound` asks for {:.1} %",
                100.0 * upper_bound(u64::from(stated), 0, policy.confidence),
                100.0 * bound
            );
            reader.fault(place, message, format!("write `runs = {needed}`, or remove one of both"));
        }
        _ => {}
    }
}

/// The fewest clean runs that show a rate of failing runs of at most `bound`.
fn runs_for(bound: f64, confidence: f64) -> Option<u32> {
    let shows = |runs: u32| upper_bound(u64::from(runs), 0, confidence) <= bound;
    if !shows(MOST_RUNS) {
        return None;
    }
    // The bound falls with every run.
    let (mut below, mut enough) = (0, MOST_RUNS);
    while enough - below > 1 {
        let middle = u32::midpoint(below, enough);
        if shows(middle) { enough = middle } else { below = middle }
    }
    Some(enough)
}

fn axis(reader: &mut Reader<'_>, name: &str, place: &Place) -> Option<Axis> {
    let axis = Axis::ALL.into_iter().find(|axis| axis.as_str() == name);
    if axis.is_none() {
        let names = Axis::ALL.map(Axis::as_str);
        let hint = match nearest(name, &names) {
            Some(name) => format!("did you mean \"{name}\"?"),
            None => format!("the axes are: {}", names.join(", ")),
        };
        reader.fault(place, format!("there is no axis {name:?}"), hint);
    }
    axis
}

fn axes(reader: &mut Reader<'_>, policy: &mut Policy, raw: Option<&Located<Vec<Located<String>>>>) {
    let Some(raw) = raw else { return };
    policy.axes = BTreeSet::new();
    for Located { value, place } in &raw.value {
        let Some(axis) = axis(reader, value, place) else { continue };
        if !policy.axes.insert(axis) {
            reader.fault(place, format!("the axis {value:?} is there twice"), "remove one");
        }
    }
}

fn sensitivities(
    reader: &mut Reader<'_>,
    policy: &mut Policy,
    raw: &BTreeMap<String, Located<Remedy>>,
    axes_stated: bool,
) {
    for (name, Located { value, place }) in raw {
        let Some(axis) = axis(reader, name, place) else { continue };
        if *value == Remedy::Pin && LOOSE.contains(&axis) {
            let message =
                format!("`sensitive.{axis}` cannot be \"pin\": no machine holds it still");
            reader.fault(place, message, "write \"quarantine\" or \"reject\"");
        } else if axes_stated && !policy.axes.contains(&axis) {
            let message = format!(
                "`sensitive.{axis}` says what to do about tests that `axes` does not look for"
            );
            let hint = format!("add \"{axis}\" to `axes`, or remove `sensitive.{axis}`");
            reader.fault(place, message, hint);
        } else {
            policy.sensitive.insert(axis, *value);
        }
    }
}
