//! What test runners reported, read into an outcome per test id. Pure.
