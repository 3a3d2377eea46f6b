//! The evaluation manifest: written, described by a JSON schema, and checked offline.
