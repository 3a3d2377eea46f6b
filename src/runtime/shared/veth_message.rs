//! The message of rtnetlink(7) that makes a pair of virtual Ethernet devices, and what the kernel answers. Of the standard
//! library alone: pid 1 of a daemon's container has nothing else.

use std::io;

/// linux/rtnetlink.h, linux/netlink.h, linux/if_link.h, linux/veth.h.
const RTM_NEWLINK: u16 = 16;
const REQUEST_CREATE_EXCLUSIVE_ACK: u16 = 0x1 | 0x400 | 0x200 | 0x4;
const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;

/// An `ifinfomsg` that leaves all to the kernel.
const ANY_LINK: [u8; 16] = [0; 16];

/// Length of a netlink message's header; in an answer the error number follows it.
const HEADER: usize = 16;

/// asm-generic/errno.h.
const EPROTO: i32 = 71;

/// Asks for the pair.
pub(crate) fn message(name: &str, peer: &str) -> Vec<u8> {
    let peer = [&ANY_LINK[..], &attribute(IFLA_IFNAME, &terminated(peer))].concat();
    let data = attribute(IFLA_INFO_DATA, &attribute(VETH_INFO_PEER, &peer));
    let information = [attribute(IFLA_INFO_KIND, b"veth"), data].concat();
    let body = [
        &ANY_LINK[..],
        &attribute(IFLA_IFNAME, &terminated(name)),
        &attribute(IFLA_LINKINFO, &information),
    ]
    .concat();
    let length = u32::try_from(HEADER + body.len()).expect("a short message");
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(RTM_NEWLINK.to_ne_bytes());
    message.extend(REQUEST_CREATE_EXCLUSIVE_ACK.to_ne_bytes());
    // Sequence number and sender, both of no interest.
    message.extend([0; 8]);
    message.extend(body);
    message
}

/// What the kernel's answer says.
pub(crate) fn outcome(answer: &[u8]) -> io::Result<()> {
    let error = answer
        .get(HEADER..)
        .and_then(|rest| rest.first_chunk::<4>())
        .map_or(EPROTO, |bytes| -i32::from_ne_bytes(*bytes));
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

fn terminated(text: &str) -> Vec<u8> {
    [text.as_bytes(), b"\0"].concat()
}

/// Length (padding not counted), kind, payload, padding to four bytes.
fn attribute(kind: u16, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + payload.len()).expect("a short attribute");
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(payload);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_what_the_kernel_reads() {
        let message = message("eth0", "hole0");
        assert_eq!(message.len() % 4, 0);
        assert_eq!(message[..4], u32::try_from(message.len()).unwrap().to_ne_bytes());
        assert_eq!(attribute(3, b"ab\0")[..], [7, 0, 3, 0, b'a', b'b', 0, 0]);
    }

    #[test]
    fn an_answer_is_an_error_number_or_none() {
        let mut answer = [0; 20];
        assert!(outcome(&answer).is_ok());
        answer[HEADER..].copy_from_slice(&(-17_i32).to_ne_bytes());
        assert_eq!(outcome(&answer).unwrap_err().raw_os_error(), Some(17));
        assert_eq!(outcome(&answer[..17]).unwrap_err().raw_os_error(), Some(EPROTO));
    }
}
