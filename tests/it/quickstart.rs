//! Parts of the quickstart built for real and compared with the committed digests; a split from git, searched for
//! leaks and built twice.

mod git;
mod place;
mod rebuild;
