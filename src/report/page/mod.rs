//! The page: one section a file. Markup is written by maud, which escapes every value.

mod causes;
mod comparison;
mod durations;
mod frame;
mod image;
mod instance;
mod instances;
mod logs;
mod matrix;
mod overview;
mod parts;
mod runs;
mod unstable;

pub use frame::html;
