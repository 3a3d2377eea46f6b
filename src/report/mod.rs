//! A split's gold runs for people: one HTML file that needs nothing else.
//!
//! [`gather`] reads what a manifest names from the store and reduces it, an instance at a time, to a [`ReportInput`];
//! [`html`] is a pure function of that: the same input gives the same bytes. Whatever came from outside (ids, logs, names) is
//! hostile: maud escapes markup, `text` shows characters that hide or reorder others, and the page's own policy allows no request.

mod error;
mod excerpt;
mod gather;
mod matrix;
mod model;
mod page;
mod runs;
mod summary;
mod text;
mod words;

pub use error::Error;
pub use excerpt::{Excerpt, Stream};
pub use gather::{Gathering, gather};
pub use matrix::{Column, Row};
pub use model::{Facts, InstanceReport, LayerSize, Part, ReportInput};
pub use page::html;
pub use runs::{RunLine, SlowTest};
pub use summary::summarise;
pub use text::{byte_size, percent, visible};
pub use words::{cause, policy, remedy};
