//! The only HTTP client: retries, size and digest checked while reading, an offline switch, and the host's own configuration of where PyPI and Debian are.
