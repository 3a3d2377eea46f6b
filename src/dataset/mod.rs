//! Rows in the shapes that SWE-bench data comes in, read into a [`Split`].

mod model;

pub use model::{Instance, InstanceId, Pair, Sdist, Source, Split};
