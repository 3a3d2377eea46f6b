//! The embedded runtime: namespaces, overlayfs, cgroups and seccomp, driven by a re-exec of this binary.
