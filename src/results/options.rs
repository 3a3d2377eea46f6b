//! How tests are run: what the host tells a runner of ours.
//!
//! ```text
//! /run/hallmark/options.json        these options, read-only
//! /run/hallmark/*_runner.py         the runners, read-only
//! /run/hallmark-report/nonce        32 random hex digits, removed by the runner when it has read them
//! /run/hallmark-report/report       the stream of lines, made empty by the host
//! ```

use serde::Serialize;

use crate::base::Digest;

/// The folder of the runners inside a container.
pub const RUNNER_FOLDER: &str = "/run/hallmark";
/// The writable folder of the report inside a container.
pub const REPORT_FOLDER: &str = "/run/hallmark-report";
/// File in the report's folder that the runner reads the nonce from.
pub const NONCE_FILE: &str = "nonce";
/// File in the report's folder that a command writes whose results are JUnit XML.
pub const JUNIT_FILE: &str = "junit.xml";
/// File in the report's folder that the runner appends to.
pub const REPORT_FILE: &str = "report";
/// The signal that ends the process when one test hangs where no Python code runs: SIGXCPU.
pub const HARD_LIMIT_SIGNAL: i32 = 24;

/// File beside the runners that holds the options.
const OPTIONS_FILE: &str = "options.json";

/// The sources of the runners by file name.
const RUNNERS: [(&str, &str); 4] = [
    ("hallmark_runner.py", include_str!("runner/hallmark_runner.py")),
    ("pytest_runner.py", include_str!("runner/pytest_runner.py")),
    ("sympy_runner.py", include_str!("runner/sympy_runner.py")),
    ("unittest_runner.py", include_str!("runner/unittest_runner.py")),
];

/// How tests are run.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Options {
    /// Wall time of one test in seconds; 0 for no limit.
    pub test_timeout: f64,
    /// Whether the tests of other modules run when one module does not import.
    pub continue_on_collection_errors: bool,
    /// Ids in the order in which their tests are run, byte for byte as they were collected; `None` for the order
    /// of the collection. Ids that are not collected are passed over. Of tests that share an id, each
    /// mention takes the next, and the last mention all that are left.
    pub order: Option<Vec<String>>,
    /// Whether the tests that are not in `order` are left out; else they are run after it.
    pub only: bool,
    /// Whether tests are collected and not run: the report then holds the ids in their order.
    pub collect_only: bool,
    /// The network device behind which nothing answers: packets that a test sends there are counted, and
    /// the look-ups that found no name server. `None` where the network is the host's.
    pub black_hole: Option<String>,
}

impl Options {
    /// The options that ask for something, by their names in the file.
    pub fn asked(&self) -> Vec<&'static str> {
        let asked = [
            ("test-timeout", self.test_timeout > 0.0),
            ("order", self.order.is_some()),
            ("only", self.only),
            ("collect-only", self.collect_only),
        ];
        asked.into_iter().filter(|(_, is_asked)| *is_asked).map(|(name, _)| name).collect()
    }
}

/// Every file of the runners' folder, by name: the sources and the options.
pub fn runner_files(options: &Options) -> Vec<(&'static str, Vec<u8>)> {
    let text = serde_json::to_vec(options).expect("strings, numbers and flags are always written");
    let sources = RUNNERS.iter().map(|(name, source)| (*name, source.as_bytes().to_vec()));
    sources.chain([(OPTIONS_FILE, text)]).collect()
}

/// Digest of the runners' sources: part of what identifies how results were read.
pub fn runner_digest() -> Digest {
    let mut all = Vec::new();
    for (name, source) in RUNNERS {
        all.extend_from_slice(format!("{name} {}\n{source}", source.len()).as_bytes());
    }
    Digest::of(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_a_file_beside_the_runners() {
        let options = Options {
            test_timeout: 1.5,
            order: Some(vec!["t.py::a[\u{e4}\\n\"]".to_owned()]),
            ..Options::default()
        };
        let files = runner_files(&options);
        let names: Vec<_> = files.iter().map(|(name, _)| *name).collect();
        assert_eq!(
            names,
            [
                "hallmark_runner.py",
                "pytest_runner.py",
                "sympy_runner.py",
                "unittest_runner.py",
                "options.json"
            ]
        );
        assert_eq!(
            String::from_utf8(files[4].1.clone()).unwrap(),
            "{\"test-timeout\":1.5,\"continue-on-collection-errors\":false,\
             \"order\":[\"t.py::a[\u{e4}\\\\n\\\"]\"],\"only\":false,\"collect-only\":false,\
             \"black-hole\":null}"
        );
    }
}
