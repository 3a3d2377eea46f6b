//! A pair of virtual Ethernet devices in one namespace, for hosts that keep /dev/net/tun from their
//! users: what goes into one end comes out of the other, where a packet socket counts it and
//! nobody answers.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use super::super::shared::{veth_message, veth_outcome};

/// Makes the pair.
pub(super) fn create(name: &str, peer: &str) -> io::Result<()> {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )?;
    rustix::net::send(&socket, &veth_message(name, peer), SendFlags::empty())?;
    let mut answer = [0; 256];
    let (read, _) = rustix::net::recv(&socket, &mut answer[..], RecvFlags::empty())?;
    veth_outcome(&answer[..read])
}

/// A socket that reads every IP packet that comes out at the device with this index.
pub(super) fn listen(index: i32) -> io::Result<OwnedFd> {
    let socket = rustix::net::socket_with(
        AddressFamily::PACKET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?;
    super::sys::bind_packet_socket(&socket, index)?;
    Ok(socket)
}
