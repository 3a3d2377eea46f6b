//! Other people's formats: rows that the harness of SWE-bench grades. Pure.

mod error;
mod swebench;

pub use error::Error;
pub use swebench::{Row, RowInput, row};
