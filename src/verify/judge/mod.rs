//! The verdict: a pure function of the expected tests, the records and the policy. Replaying the same records
//! gives the same bytes, whatever their order.

mod compare;
mod unstable;
mod verdict;
mod warnings;

pub use verdict::judge;
