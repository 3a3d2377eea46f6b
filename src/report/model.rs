//! What a report is made from: compact values, reduced from records an instance at a time, so that a split of
//! hundreds of instances fits into memory.

use super::excerpt::Excerpt;
use super::matrix::{Column, Row};
use super::runs::{RunLine, SlowTest};
use crate::base::{Arch, Digest};
use crate::manifest::Digests;
use crate::runtime::Gap;
use crate::verify::{Lists, Policy, Verdict};

/// A split's report.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportInput {
    /// The split's name.
    pub split: String,
    /// For which processor.
    pub platform: Arch,
    /// Version of the hallmark that made the runs.
    pub hallmark: String,
    /// The manifest's digests.
    pub digests: Option<Digests>,
    /// The policy that judged.
    pub policy: Policy,
    /// How many runs were made at once, at most.
    pub slots: u32,
    /// What the host could not give to some run.
    pub gaps: Vec<Gap>,
    /// The instances, by id.
    pub instances: Vec<InstanceReport>,
}

/// What is known of an instance besides its runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// Its id.
    pub id: String,
    /// Its environment.
    pub environment: String,
    /// The tests that are expected.
    pub lists: Lists,
    /// The verdict.
    pub verdict: Verdict,
    /// The layers of its image, bottom first.
    pub layers: Vec<LayerSize>,
    /// Runs whose record is not at hand, each by its key and why.
    pub absent: Vec<(Digest, String)>,
}

/// An instance, ready to be shown.
#[derive(Debug, Clone, PartialEq)]
pub struct InstanceReport {
    /// What is known besides its runs.
    pub facts: Facts,
    /// Its runs, by phase, conditions and repeat; a run's number is its place here, from 1.
    pub runs: Vec<RunLine>,
    /// The columns of the matrix.
    pub columns: Vec<Column>,
    /// The rows of the matrix: tests with equal outcomes in all runs, the most telling first.
    pub rows: Vec<Row>,
    /// The slowest tests.
    pub slowest: Vec<SlowTest>,
    /// Log excerpts of runs that failed.
    pub excerpts: Vec<Excerpt>,
}

/// Which image brings a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The base image.
    Base,
    /// The environment's image.
    Environment,
    /// The instance's own.
    Instance,
}

impl Part {
    /// All of them, bottom first.
    pub const ALL: [Self; 3] = [Self::Base, Self::Environment, Self::Instance];

    /// A word for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Environment => "environment",
            Self::Instance => "instance",
        }
    }
}

/// A layer by its sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerSize {
    /// Which image brings it.
    pub part: Part,
    /// Digest of the uncompressed tar.
    pub diff_id: Digest,
    /// Length of the uncompressed tar in bytes.
    pub size: u64,
    /// Length of the compressed blob, where there is one.
    pub compressed: Option<u64>,
}

impl InstanceReport {
    /// Length of the image's uncompressed layers in bytes.
    pub fn image_size(&self) -> u64 {
        self.facts.layers.iter().map(|layer| layer.size).sum()
    }

    /// Wall time of the slowest run in seconds.
    pub fn slowest_run(&self) -> Option<f64> {
        self.runs.iter().map(|run| run.wall).max_by(f64::total_cmp)
    }
}
