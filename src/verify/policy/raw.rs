//! The tables of a policy as they are written, before defaults and rules.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use toml::de::DeValue;

use super::model::Remedy;
use crate::spec::{Count, Duration, Located, Place, Raw, Reader, nearest, number, raw_table};

raw_table! {
    /// An admission policy of hallmark.
    RawPolicy {
        /// What an admission asks for.
        admission = "admission": RawAdmission,
    }
}

raw_table! {
    /// What an admission asks for.
    RawAdmission {
        /// Where everything that is not stated comes from: `quick`, `training`, `benchmark` (the default) or `release`.
        preset = "preset": String,
        /// Clean plain runs after the gold patch.
        runs = "runs": Count,
        /// Instead of `runs`: the largest rate of failing runs that may be left, such as `0.1` or `"10 %"`.
        bound = "bound": Share,
        /// Confidence of the bounds. Default: 0.95.
        confidence = "confidence": Share,
        /// Runs before the gold patch. Default: 3.
        pre_runs = "pre-runs": Count,
        /// What the combined runs vary. Default: everything.
        axes = "axes": Vec<Located<String>>,
        /// A PASS_TO_PASS test that is flaky: `quarantine` (the default) or `reject`.
        flaky = "flaky": Remedy,
        /// A FAIL_TO_PASS test that is flaky, or sensitive to what is not pinned: `reject` (the default) or `quarantine`.
        flaky_fail_to_pass = "flaky-fail-to-pass": Remedy,
        /// A test that is sensitive, by axis: `pin`, `quarantine` or `reject`.
        sensitive = "sensitive": BTreeMap<String, Located<Remedy>>,
        /// The largest share of PASS_TO_PASS that may be set aside, such as `0.1` (the default) or `"10 %"`.
        max_quarantined = "max-quarantined": Share,
        /// Most runs to find causes, an instance. Default: 60.
        max_probes = "max-probes": Count,
        /// Wall time of all runs of an instance, such as `"2 h"`, after which no new one begins. Default: none.
        time_budget = "time-budget": Duration,
        /// Whether a run without a memory limit makes the verdict provisional. Default: true.
        require_memory_limit = "require-memory-limit": bool,
    }
}

/// The words of a remedy.
const REMEDIES: [(&str, Remedy); 3] =
    [("pin", Remedy::Pin), ("quarantine", Remedy::Quarantine), ("reject", Remedy::Reject)];

impl Raw for Remedy {
    fn read(value: &DeValue<'_>, place: &Place, reader: &mut Reader<'_>) -> Option<Self> {
        let word = String::read(value, place, reader)?;
        let remedy = REMEDIES.iter().find(|(name, _)| *name == word).map(|(_, remedy)| *remedy);
        if remedy.is_none() {
            let names = REMEDIES.map(|(name, _)| name);
            let hint = match nearest(&word, &names) {
                Some(name) => format!("did you mean \"{name}\"?"),
                None => "write \"pin\", \"quarantine\" or \"reject\"".to_owned(),
            };
            reader.fault(place, format!("there is no remedy {word:?}"), hint);
        }
        remedy
    }
}

/// A share of one, as a number or in per cent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share(pub(super) f64);

impl Raw for Share {
    fn read(value: &DeValue<'_>, place: &Place, reader: &mut Reader<'_>) -> Option<Self> {
        const HINT: &str = "write a number from 0 to 1, or per cent: `0.1` or `\"10 %\"`";
        let share = match value {
            DeValue::Integer(_) | DeValue::Float(_) => number(value, place, reader)?,
            DeValue::String(text) => {
                let per_cent = text.strip_suffix('%').map(str::trim_end);
                let digits = |text: &&str| text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
                let Some(per_cent) = per_cent.filter(digits).and_then(|text| text.parse().ok())
                else {
                    reader.fault(place, format!("{:?} is not a share", text.as_ref()), HINT);
                    return None;
                };
                let per_cent: f64 = per_cent;
                per_cent / 100.0
            }
            _ => {
                reader.wrong_type(value, place, "a share", HINT);
                return None;
            }
        };
        if share > 1.0 {
            reader.fault(place, "this share is larger than the whole", HINT);
            return None;
        }
        Some(Self(share))
    }
}

impl JsonSchema for Share {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Share".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "number", "minimum": 0, "maximum": 1 },
            { "type": "string", "pattern": "^[0-9]+(\\.[0-9]+)? ?%$" },
        ] })
    }
}
