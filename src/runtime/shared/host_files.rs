//! Files of /etc that say how a container is connected.

use std::io;

use super::super::error::system;
use super::super::{Error, Network, RunSpec};

/// /etc/hosts of the container.
pub(crate) fn hosts(spec: &RunSpec) -> Result<String, Error> {
    let mut text = String::from(
        "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nff02::1\tip6-allnodes\nff02::2\tip6-allrouters\n",
    );
    if spec.network == Network::Host {
        text = fs_err::read_to_string("/etc/hosts").map_err(system("read the host's names"))?;
    }
    // The address that Debian gives a machine's own name.
    Ok(format!("{text}127.0.1.1\t{}\n", spec.hostname))
}

/// /etc/resolv.conf of the container: names fail at once, unless it has the host's network.
pub(crate) fn resolv_conf(spec: &RunSpec) -> Result<String, Error> {
    if spec.network != Network::Host {
        return Ok(String::new());
    }
    match fs_err::read_to_string("/etc/resolv.conf") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        other => other.map_err(system("read the host's name servers")),
    }
}
