//! A split through all stages: locks, bundle, images, runs, verdicts; scheduling and resume.
