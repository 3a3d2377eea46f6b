//! Gold runs and what they prove: schedule, records, verdict.
