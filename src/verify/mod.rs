//! Runs and verdicts: patches are applied and rebuilt once per phase, tests run in fresh containers, every
//! run is a record, and verdicts are pure functions of records.
//!
//! ```text
//! <store>/runs/<key>/
//!   record.json    RunRecord, canonical
//!   stdout stderr  as the container wrote them
//!   report         the runner's stream
//! ```

mod apply;
mod bound;
mod changes;
pub mod conditions;
mod derive;
mod error;
mod execute;
mod judge;
mod ladder;
mod load;
mod near;
mod patch;
mod plan;
mod policy;
mod profile;
mod reading;
mod record;
mod records;
mod rules;
mod verdict;
mod why;

pub(crate) use apply::environment;
pub use bound::upper_bound;
pub use derive::{DeriveError, Derived, derive_lists};
pub use error::Error;
pub use execute::{execute, made_before};
pub use judge::judge;
pub use ladder::{RunRequest, combined_runs, wall_factor, wanted};
pub use load::with_load;
pub use near::{NearMiss, Nearness};
pub use patch::{PatchedFile, patched_files, test_files};
pub use plan::{RunPlan, file_arguments, record_key, run_key};
pub use policy::{Policy, PolicyErrors, Remedy, policy_schema};
pub use profile::{Axis, Clock, Cpu, Profile, Setting, TestOrder};
pub(crate) use reading::disagreements;
pub use record::{LogRef, PatchName, PatchRef, Phase, RECORD_VERSION, RunOutcome, RunRecord};
pub use records::{LogKind, load, log_path};
pub use verdict::{
    Cause, Comparison, Condition, Cost, Count, Difference, Effect, ListName, Lists, MissingTest,
    NetworkTest, OrderCause, Reason, Rule, Status, UnstableTest, VERDICT_VERSION, Verdict, Warning,
};
