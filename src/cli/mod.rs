//! The command line: one file per verb, progress, diagnostics, exit codes.

mod archive;
mod args;
mod audit;
mod build;
mod bundle;
mod collect;
mod diagnostics;
mod doctor;
pub mod exit;
mod export;
mod gc;
mod gold;
mod interrupt;
mod load;
mod lock;
mod main;
mod printer;
mod progress;
mod push;
mod report;
mod run;
mod runtime;
mod session;
mod settings;
mod size;
mod swebench;
mod table;
mod verify;

pub use main::main;
