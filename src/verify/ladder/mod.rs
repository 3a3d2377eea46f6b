//! The schedule of an instance's runs (DESIGN.md section 8) as a pure function of the policy and the records so far, and
//! what those records say of causes.
//!
//! ```text
//! evidence    records, sorted and read against the expected tests
//! array       the four combined runs
//! search      settings that make one test fail, from what it did under every profile
//! order       tests that another test depends on
//! minimize    the fewest of many that show something, asked step by step
//! causes      all of that for all tests of an instance, and the runs that would tell more
//! schedule    what is wanted next
//! ```

mod array;
mod causes;
mod evidence;
mod minimize;
mod order;
mod schedule;
mod search;

pub use array::{combined_runs, wall_factor};
pub use schedule::{RunRequest, wanted};

pub(crate) use causes::{Finding, Findings, find};
pub(crate) use evidence::{Evidence, Run, axis_of};
pub(crate) use schedule::{FIRST_RUNS, MOST_INFRA_ERRORS, counted_from, is_climbed, is_spent};
