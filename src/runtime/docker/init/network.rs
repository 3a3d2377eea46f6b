//! The network of a run: loopback, and a black hole behind the default route, so that a connect times out as behind a
//! firewall, and is counted.
//!
//! The hole is a pair of virtual Ethernet devices: what goes into `eth0` comes out of the other, where a packet socket
//! counts it and nobody answers.

use std::cell::Cell;
use std::ffi::{CStr, c_ulong};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};

use super::request::{Network, Request};
use super::sys::{self, Address6, Interface, Route6};
use super::traffic::{is_attempt, refused};
use super::{During as _, Failure, veth_message};

const NAME: &CStr = c"eth0";
/// The other end.
const PEER: &CStr = c"hole0";
const LOOPBACK: &CStr = c"lo";

/// Documentation addresses (RFC 5737, RFC 3849): nothing real is shadowed.
const ADDRESS: [u8; 4] = [192, 0, 2, 2];
const NETMASK: [u8; 4] = [255, 255, 255, 0];
const ADDRESS_6: [u8; 16] = [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
const LOOPBACK_6: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// linux/sockios.h.
pub(super) const ADD_ROUTE: c_ulong = 0x890b;
const SET_FLAGS: c_ulong = 0x8914;
const SET_ADDRESS: c_ulong = 0x8916;
const SET_NETMASK: c_ulong = 0x891c;
const GET_INDEX: c_ulong = 0x8933;
const DELETE_ADDRESS: c_ulong = 0x8936;

/// Address families and kinds of sockets.
const INET: i32 = 2;
const INET6: i32 = 10;
const NETLINK: i32 = 16;
const PACKET: i32 = 17;
const DATAGRAM: i32 = 2;
const RAW: i32 = 3;
const NONBLOCKING: i32 = 0x800;

const EADDRNOTAVAIL: i32 = 99;
const EAFNOSUPPORT: i32 = 97;

/// The device that swallows everything, and what it has swallowed.
pub(super) struct BlackHole {
    device: File,
    packets: Cell<u64>,
}

impl BlackHole {
    /// Readable when something was swallowed.
    pub(super) fn device(&self) -> &File {
        &self.device
    }

    /// Takes packets until there are none.
    pub(super) fn drain(&self) {
        let mut packet = [0; 64];
        while let Ok(read @ 1..) = (&self.device).read(&mut packet) {
            if is_attempt(&packet[..read]) {
                self.packets.set(self.packets.get() + 1);
            }
        }
    }
}

/// Packets towards other machines, and name look-ups.
pub(super) fn attempts(request: &Request, hole: Option<&BlackHole>) -> Option<(u64, u64)> {
    if request.network == Network::Host {
        return None;
    }
    let swallowed = hole.map_or(0, |hole| {
        hole.drain();
        hole.packets.get()
    });
    let v4 = fs::read_to_string("/proc/self/net/snmp").ok()?;
    let v6 = match request.network {
        // A try to reach `::1`, which has no route either, is none to leave.
        Network::BlackHoleV4 => String::new(),
        // Without IPv6 there is nothing to count.
        _ => fs::read_to_string("/proc/self/net/snmp6").unwrap_or_default(),
    };
    let (no_route, no_port) = refused(&v4, &v6);
    Some((swallowed + no_route, no_port))
}

/// Brings the namespace's network up; notes what it cannot have.
pub(super) fn set_up(
    request: &Request,
    gaps: &mut Vec<String>,
) -> Result<Option<BlackHole>, Failure> {
    if request.network == Network::Host {
        return Ok(None);
    }
    let socket = sys::socket(INET, DATAGRAM).during("open a socket")?;
    match up(&socket, LOOPBACK) {
        // A daemon that gives no power over the network has brought it up itself.
        Err(error) if error.raw_os_error() == Some(sys::EPERM) => {}
        other => other.during("bring loopback up")?,
    }
    let with_6 = request.network != Network::BlackHoleV4;
    let loopback_6 = if with_6 { add_loopback_6(&socket) } else { remove_loopback_6(&socket) };
    if loopback_6.is_err() && !with_6 {
        gaps.push("ipv4-only".to_owned());
    }
    if request.network == Network::Loopback {
        return Ok(None);
    }
    if let Ok(hole) = black_hole(&socket, with_6) {
        return Ok(Some(hole));
    }
    gaps.push("black-hole".to_owned());
    Ok(None)
}

/// A daemon may have left `::1` out.
fn add_loopback_6(socket: &File) -> io::Result<()> {
    let socket_6 = sys::socket(INET6, DATAGRAM)?;
    let mut own = Address6 { address: LOOPBACK_6, prefix: 128, index: index(socket, LOOPBACK)? };
    sys::ioctl(&socket_6, SET_ADDRESS, &mut own)
}

fn remove_loopback_6(socket: &File) -> io::Result<()> {
    let socket_6 = match sys::socket(INET6, DATAGRAM) {
        // A kernel without IPv6 is what was wanted.
        Err(error) if error.raw_os_error() == Some(EAFNOSUPPORT) => return Ok(()),
        other => other?,
    };
    let mut own = Address6 { address: LOOPBACK_6, prefix: 128, index: index(socket, LOOPBACK)? };
    match sys::ioctl(&socket_6, DELETE_ADDRESS, &mut own) {
        Err(error) if error.raw_os_error() == Some(EADDRNOTAVAIL) => Ok(()),
        other => other,
    }
}

fn black_hole(socket: &File, with_6: bool) -> io::Result<BlackHole> {
    create_pair()?;
    up(socket, PEER)?;
    let device = sys::socket(PACKET, DATAGRAM | NONBLOCKING)?;
    sys::bind_to_device(&device, index(socket, PEER)?)?;
    for (request, address) in [(SET_ADDRESS, ADDRESS), (SET_NETMASK, NETMASK)] {
        let mut own = interface(NAME);
        // struct sockaddr_in: family, port, address.
        own.value[..2].copy_from_slice(&2_u16.to_ne_bytes());
        own.value[4..8].copy_from_slice(&address);
        sys::ioctl(socket, request, &mut own)?;
    }
    up(socket, NAME)?;
    sys::add_default_route(socket, NAME)?;
    if with_6 {
        // A kernel without IPv6 has nothing to swallow.
        let _ = default_route_6(socket);
    }
    Ok(BlackHole { device, packets: Cell::new(0) })
}

fn default_route_6(socket: &File) -> io::Result<()> {
    let socket_6 = sys::socket(INET6, DATAGRAM)?;
    let index = index(socket, NAME)?;
    let mut own = Address6 { address: ADDRESS_6, prefix: 64, index };
    sys::ioctl(&socket_6, SET_ADDRESS, &mut own)?;
    let mut route = Route6 { metric: 1024, flags: 1, index, ..Route6::default() };
    sys::ioctl(&socket_6, ADD_ROUTE, &mut route)
}

fn interface(name: &CStr) -> Interface {
    let mut interface = Interface { name: [0; 16], value: [0; 24] };
    interface.name[..name.count_bytes()].copy_from_slice(name.to_bytes());
    interface
}

fn index(socket: &File, name: &CStr) -> io::Result<i32> {
    let mut own = interface(name);
    sys::ioctl(socket, GET_INDEX, &mut own)?;
    Ok(i32::from_ne_bytes(own.value[..4].try_into().expect("four bytes")))
}

/// Switches a device on. Nobody is asked for hardware addresses: nobody would answer, and the connect would fail
/// instead of waiting.
fn up(socket: &File, name: &CStr) -> io::Result<()> {
    let mut own = interface(name);
    // IFF_UP, IFF_RUNNING, IFF_NOARP.
    own.value[..2].copy_from_slice(&(0x1_u16 | 0x40 | 0x80).to_ne_bytes());
    sys::ioctl(socket, SET_FLAGS, &mut own)
}

/// Makes the pair, by rtnetlink(7).
fn create_pair() -> io::Result<()> {
    let text = |name: &'static CStr| name.to_str().expect("written here in ASCII");
    let mut socket = sys::socket(NETLINK, RAW)?;
    socket.write_all(&veth_message::message(text(NAME), text(PEER)))?;
    let mut answer = [0; 256];
    let read = socket.read(&mut answer)?;
    veth_message::outcome(&answer[..read])
}
