//! Rows in the shapes that SWE-bench data comes in, read into a [`Split`], and written back strictly.
//!
//! ```text
//! [row, ...]                  a JSON array
//! row \n row \n ...           JSON lines
//! {"<id>": row, ...}          a JSON object keyed by instance id
//! ```
//!
//! A row has a git source (`repo`, `base_commit`, `patch`, `test_patch`) or is a pair of releases (`pair`). Every fault
//! is reported with its line and the row's id; nothing is guessed.

mod check;
mod error;
mod load;
mod model;
mod python_list;
mod row;
mod rows;
mod test_ids;
mod write;

pub use check::check_spec;
pub use error::{Error, RowFault};
pub use load::{load, parse};
pub use model::{Instance, InstanceId, InstanceIdError, Pair, Sdist, Source, Split};
pub use write::write;
