//! Rows for the harness of SWE-bench (5.0.2, and 4.1.0 where it knows the repository): the image, the script that applies the
//! test patch and runs the tests, the name of the parser of what they print, and the lists of expected tests as that parser names them.

mod ids;
mod row;
mod runner;
mod script;

pub use row::{Row, RowInput, row};
