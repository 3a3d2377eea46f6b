//! The network of a run: loopback, and a black hole behind the default route, so that a connect times
//! out as behind a firewall, and is counted.
//!
//! The hole is a TUN device that pid 1 reads and drops, else a veth pair at whose other end it listens. It
//! looks like a container's usual `eth0`.

use std::cell::Cell;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::super::shared::{is_attempt, refused};
use super::super::{BLACK_HOLE_DEVICE, Gap, Network};
use super::protocol::{During, Failure, Hole, Request};
use super::sys;

const NAME: &str = BLACK_HOLE_DEVICE;

/// The other end of a veth pair.
const PEER: &str = "hole0";

/// Documentation addresses (RFC 5737, RFC 3849): nothing real is shadowed.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const NETMASK: Ipv4Addr = Ipv4Addr::new(255, 255, 255, 0);
/// Deletes an address; libc has it for some targets only.
const SIOCDIFADDR: libc::Ioctl = 0x8936;

const ADDRESS_6: [u8; 16] = [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

/// The device that swallows everything, and what it has swallowed.
pub(super) struct BlackHole {
    device: OwnedFd,
    packets: Cell<u64>,
}

impl AsFd for BlackHole {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

impl BlackHole {
    /// Takes packets until there are none.
    pub(super) fn drain(&self) {
        let mut packet = [0; 64];
        while let Ok(read) = rustix::io::read(&self.device, &mut packet) {
            if read == 0 {
                return;
            }
            if is_attempt(&packet[..read]) {
                self.packets.set(self.packets.get() + 1);
            }
        }
    }
}

/// Packets towards other machines, and name look-ups: called from within the network namespace.
pub(super) fn attempts(request: &Request, hole: Option<&BlackHole>) -> Option<(u64, u64)> {
    if request.network == Network::Host {
        return None;
    }
    let swallowed = hole.map_or(0, |hole| {
        hole.drain();
        hole.packets.get()
    });
    let v4 = fs_err::read_to_string("/proc/self/net/snmp").ok()?;
    // Without IPv6 there is nothing to count.
    let v6 = match request.network {
        // A try to reach `::1`, which has no route either, is none to leave.
        Network::NoneV4 => String::new(),
        _ => fs_err::read_to_string("/proc/self/net/snmp6").unwrap_or_default(),
    };
    let (no_route, no_port) = refused(&v4, &v6);
    Some((swallowed + no_route, no_port))
}

/// Brings the namespace's network up; notes what it cannot have.
pub(super) fn set_up(request: &Request, gaps: &mut Vec<Gap>) -> Result<Option<BlackHole>, Failure> {
    if request.network == Network::Host {
        return Ok(None);
    }
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .during("open a socket")?;
    up(&socket, "lo").during("bring loopback up")?;
    let with_6 = request.network != Network::NoneV4;
    if !with_6 && remove_loopback_6(&socket).is_err() {
        gaps.push(Gap::Ipv4Only);
    }
    if !request.network.has_black_hole() {
        return Ok(None);
    }
    for kind in &request.holes {
        // On an error the next kind; a host without any has a gap, which is recorded, and no error.
        if let Ok(hole) = black_hole(&socket, *kind, with_6) {
            return Ok(Some(hole));
        }
    }
    gaps.push(Gap::BlackHole);
    Ok(None)
}

/// Takes `::1` from loopback.
fn remove_loopback_6(socket: &OwnedFd) -> io::Result<()> {
    let kind = (AddressFamily::INET6, SocketType::DGRAM);
    let socket_6 = match socket_with(kind.0, kind.1, SocketFlags::CLOEXEC, None) {
        // A kernel without IPv6 is what was wanted.
        Err(rustix::io::Errno::AFNOSUPPORT) => return Ok(()),
        other => other?,
    };
    let mut own = libc::in6_ifreq {
        ifr6_addr: libc::in6_addr { s6_addr: std::net::Ipv6Addr::LOCALHOST.octets() },
        ifr6_prefixlen: 128,
        ifr6_ifindex: index(socket, "lo")?,
    };
    match sys::ioctl(&socket_6, SIOCDIFADDR, &mut own) {
        Err(error) if error.raw_os_error() == Some(libc::EADDRNOTAVAIL) => Ok(()),
        other => other,
    }
}

fn black_hole(socket: &OwnedFd, kind: Hole, with_6: bool) -> io::Result<BlackHole> {
    let device = match kind {
        Hole::Tun => tun()?,
        Hole::Veth => {
            super::veth::create(NAME, PEER)?;
            up(socket, PEER)?;
            super::veth::listen(index(socket, PEER)?)?
        }
    };
    let mut request = interface(NAME);
    request.ifr_ifru.ifru_addr = address(ADDRESS);
    sys::ioctl(socket, libc::SIOCSIFADDR, &mut request)?;
    request.ifr_ifru.ifru_netmask = address(NETMASK);
    sys::ioctl(socket, libc::SIOCSIFNETMASK, &mut request)?;
    up(socket, NAME)?;
    sys::add_default_route(socket, NAME)?;
    if with_6 {
        // A kernel without IPv6 has nothing to swallow.
        let _ = default_route_6(socket);
    }
    Ok(BlackHole { device, packets: Cell::new(0) })
}

fn tun() -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let device = rustix::fs::open("/dev/net/tun", flags, Mode::empty())?;
    let mut request = interface(NAME);
    request.ifr_ifru.ifru_flags =
        i16::try_from(libc::IFF_TUN | libc::IFF_NO_PI).expect("small flags");
    sys::ioctl(&device, libc::TUNSETIFF, &mut request)?;
    Ok(device)
}

fn index(socket: &OwnedFd, name: &str) -> io::Result<i32> {
    let mut request = interface(name);
    sys::ioctl(socket, libc::SIOCGIFINDEX, &mut request)?;
    Ok(sys::interface_index(&request))
}

fn default_route_6(socket: &OwnedFd) -> io::Result<()> {
    let socket_6 =
        socket_with(AddressFamily::INET6, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let index = index(socket, NAME)?;
    let mut own = libc::in6_ifreq {
        ifr6_addr: libc::in6_addr { s6_addr: ADDRESS_6 },
        ifr6_prefixlen: 64,
        ifr6_ifindex: index,
    };
    sys::ioctl(&socket_6, libc::SIOCSIFADDR, &mut own)?;
    sys::add_default_route_6(&socket_6, index)
}

fn address(address: Ipv4Addr) -> libc::sockaddr {
    let mut raw = libc::sockaddr {
        sa_family: u16::try_from(libc::AF_INET).expect("a small constant"),
        sa_data: [0; 14],
    };
    // sockaddr_in: two bytes of port, then the address in network order.
    for (to, from) in raw.sa_data[2..].iter_mut().zip(address.octets()) {
        *to = sys::c_char(from);
    }
    raw
}

fn interface(name: &str) -> libc::ifreq {
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: 0 },
    };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = sys::c_char(from);
    }
    request
}

/// Switches a device on. Nobody is asked for hardware addresses: nobody would answer, and the connect would
/// fail instead of waiting.
fn up(socket: &OwnedFd, name: &str) -> io::Result<()> {
    let mut request = interface(name);
    request.ifr_ifru.ifru_flags =
        i16::try_from(libc::IFF_UP | libc::IFF_RUNNING | libc::IFF_NOARP).expect("small flags");
    sys::ioctl(socket, libc::SIOCSIFFLAGS, &mut request)
}
