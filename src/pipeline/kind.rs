//! What kind of failure an error is: the exit code hangs on it. An error of a room below is judged by what it wraps, however
//! deep: a full disk is the host's fault wherever it is met.

use super::Error;
use crate::runtime::docker::DaemonError;
use crate::{
    base, build, bundle, dataset, image, lock, manifest, net, report, resolve, runtime, spec,
    verify,
};

/// What kind of failure an error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An input file is wrong.
    Input,
    /// A build step failed.
    Build,
    /// Something could not be fetched.
    Fetch,
    /// The host cannot give what is needed.
    Host,
    /// A container daemon cannot be reached, failed in the middle, or refused.
    Daemon,
    /// A check said no.
    Check,
    /// The end was asked for.
    Interrupted,
    /// Ours.
    Internal,
}

impl Kind {
    /// This kind, or `other` where nothing better is known.
    fn or(self, other: Self) -> Self {
        if self == Self::Internal { other } else { self }
    }
}

impl Error {
    /// What kind of failure this is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Leak { .. } => Kind::Check,
            Self::Io(error) => of_io(error),
            Self::Base(error) => of_base(error),
            Self::Net(error) => of_net(error),
            Self::Spec(spec::Error::Base(error))
            | Self::Dataset(dataset::Error::Base(error))
            | Self::Lock(lock::Error::Base(error)) => of_base(error).or(Kind::Input),
            Self::NoProject { .. }
            | Self::NoSplit { .. }
            | Self::NoInstance { .. }
            | Self::NoFile { .. }
            | Self::NoFolder { .. }
            | Self::IsFolder { .. }
            | Self::IsNoFolder { .. }
            | Self::CompressedName { .. }
            | Self::NoEffect { .. }
            | Self::NoMirror { .. }
            | Self::NotCollected { .. }
            | Self::NothingToResume
            | Self::UnreadableSeries { .. }
            | Self::OtherSplit { .. }
            | Self::NoHost { .. }
            | Self::UnknownImages { .. }
            | Self::NoPolicy { .. }
            | Self::Policy(_)
            | Self::NewerFile { .. }
            | Self::NotLocked { .. }
            | Self::Spec(_)
            | Self::Dataset(_)
            | Self::Lock(_) => Kind::Input,
            Self::Bundle(error) => of_bundle(error),
            Self::Image(error) => of_image(error),
            Self::Registry(error) => of_registry(error),
            Self::Runtime(error) => of_runtime(error),
            Self::Resolve(error) => of_resolve(error),
            Self::Python(error) => of_python(error),
            Self::Build(error) => of_build(error),
            Self::Verify(error) => of_verify(error),
            Self::Manifest(error) => match error {
                manifest::Error::Base(error) => of_base(error),
                manifest::Error::Image(error) => of_image(error),
                manifest::Error::Verify(error) => of_verify(error),
                _ => Kind::Input,
            },
            Self::Report(error) => match error {
                report::Error::Base(error) => of_base(error),
                report::Error::Verify(error) => of_verify(error),
                report::Error::Io(error) => of_io(error),
            },
        }
    }
}

fn of_io(error: &std::io::Error) -> Kind {
    use std::io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    match error.kind() {
        PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull => Kind::Host,
        _ => Kind::Internal,
    }
}

fn of_base(error: &base::Error) -> Kind {
    match error {
        base::Error::Cancelled => Kind::Interrupted,
        base::Error::Io(error) => of_io(error),
        _ => Kind::Internal,
    }
}

fn of_net(error: &net::Error) -> Kind {
    match error {
        net::Error::Base(error) => of_base(error).or(Kind::Fetch),
        net::Error::Certificates { .. } => Kind::Host,
        net::Error::Setting { .. } | net::Error::Logins { .. } | net::Error::Reference { .. } => {
            Kind::Input
        }
        _ => Kind::Fetch,
    }
}

fn of_bundle(error: &bundle::Error) -> Kind {
    match error {
        // Files that did not come for the host's sake, or since the end was asked for, did not fail to be fetched.
        bundle::Error::Fetch { failures, .. } => failures
            .iter()
            .map(|failure| of_net(&failure.why))
            .find(|kind| *kind != Kind::Fetch)
            .unwrap_or(Kind::Fetch),
        bundle::Error::Net(error) => of_net(error),
        bundle::Error::DiskFull { .. } => Kind::Host,
        bundle::Error::Missing { .. } => Kind::Fetch,
        bundle::Error::Base(error) => of_base(error).or(Kind::Input),
        _ => Kind::Input,
    }
}

fn of_image(error: &image::Error) -> Kind {
    match error {
        image::Error::Base(error) => of_base(error),
        image::Error::Template { .. }
        | image::Error::Reference { .. }
        | image::Error::Name { .. }
        | image::Error::NotALayout { .. } => Kind::Input,
        error if error.is_disk_full() => Kind::Host,
        _ => Kind::Internal,
    }
}

fn of_registry(error: &image::registry::Error) -> Kind {
    use image::registry::Error;
    match error {
        Error::Base(error) => of_base(error),
        Error::Image(error) => of_image(error),
        Error::Net(error) => of_net(error),
        Error::Duplicate { .. }
        | Error::NoTag { .. }
        | Error::Moved { .. }
        | Error::Others { .. } => Kind::Input,
        _ => Kind::Fetch,
    }
}

fn of_runtime(error: &runtime::Error) -> Kind {
    match error {
        runtime::Error::Daemon(error) => of_daemon(error),
        runtime::Error::Image(error) => of_image(error),
        runtime::Error::Host { .. } => Kind::Host,
        runtime::Error::Root { .. } => Kind::Build,
        runtime::Error::Base(error) => of_base(error),
        runtime::Error::System { source, .. } => of_io(source),
        _ => Kind::Internal,
    }
}

fn of_daemon(error: &DaemonError) -> Kind {
    match error {
        DaemonError::Address { .. }
        | DaemonError::NoContext { .. }
        | DaemonError::Encrypted { .. } => Kind::Input,
        DaemonError::Base(error) => of_base(error),
        _ => Kind::Daemon,
    }
}

fn of_resolve(error: &resolve::Error) -> Kind {
    use resolve::Error;
    match error {
        Error::Base(error) => of_base(error).or(Kind::Build),
        Error::Net(error) => of_net(error),
        Error::Runtime(error) => of_runtime(error),
        Error::Signature { .. }
        | Error::Archive { .. }
        | Error::Expired { .. }
        | Error::Moved { .. } => Kind::Fetch,
        Error::Registry(error) => of_registry(error),
        Error::NoPackage { .. } | Error::NotPinned { .. } => Kind::Input,
        _ => Kind::Build,
    }
}

fn of_python(error: &resolve::python::Error) -> Kind {
    use resolve::python::Error;
    match error {
        Error::Base(error) => of_base(error).or(Kind::Build),
        Error::Runtime(error) => of_runtime(error),
        Error::Net(error) => of_net(error),
        Error::Bundle(error) => of_bundle(error),
        Error::NoSuch { .. } | Error::Requirements { .. } => Kind::Input,
        _ => Kind::Build,
    }
}

fn of_build(error: &build::Error) -> Kind {
    use build::Error;
    match error {
        Error::Base(error) => of_base(error).or(Kind::Build),
        Error::Image(error) => of_image(error).or(Kind::Build),
        Error::Bundle(error) => of_bundle(error),
        Error::Runtime(error) => of_runtime(error),
        Error::Python(error) => of_python(error),
        Error::Host { .. } => Kind::Host,
        _ => Kind::Build,
    }
}

fn of_verify(error: &verify::Error) -> Kind {
    use verify::Error;
    match error {
        Error::Base(error) => of_base(error),
        Error::Runtime(error) => of_runtime(error),
        Error::Image(error) => of_image(error),
        _ => Kind::Input,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Wrap = fn(base::Error) -> Error;

    #[test]
    fn a_full_disk_and_an_interruption_are_seen_through_every_wrapping() {
        let full = || base::Error::Io(std::io::ErrorKind::StorageFull.into());
        let wrapped: [(Wrap, &str); 11] = [
            (Error::Base, "base"),
            (|error| Error::Net(error.into()), "net"),
            (|error| Error::Bundle(error.into()), "bundle"),
            (|error| Error::Image(error.into()), "image"),
            (|error| Error::Registry(error.into()), "registry"),
            (|error| Error::Runtime(error.into()), "runtime"),
            (|error| Error::Resolve(error.into()), "resolve"),
            (|error| Error::Python(error.into()), "python"),
            (|error| Error::Build(bundle::Error::from(error).into()), "build"),
            (|error| Error::Verify(image::Error::from(error).into()), "verify"),
            (|error| Error::Manifest(verify::Error::from(error).into()), "manifest"),
        ];
        for (wrap, room) in wrapped {
            assert_eq!(wrap(full()).kind(), Kind::Host, "{room}");
            assert_eq!(wrap(base::Error::Cancelled).kind(), Kind::Interrupted, "{room}");
        }
    }
}
