//! Other people's formats.
