//! What counts as a try to reach the network. Of the standard library alone: pid 1 of a daemon's container has nothing
//! else.

/// Whether the start of an IP packet is from a program: the kernel itself sends multicast (IGMP, MLD, router
/// solicitations) to whatever device it finds.
pub(crate) fn is_attempt(packet: &[u8]) -> bool {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => packet.get(16).is_some_and(|byte| !(224..240).contains(byte)),
        Some(6) => packet.get(24).is_some_and(|byte| *byte != 0xff),
        _ => false,
    }
}

/// Packets without a route and look-ups without a server, from /proc/net/snmp and /proc/net/snmp6; the latter is empty where
/// nothing of IPv6 counts.
pub(crate) fn refused(snmp: &str, snmp_6: &str) -> (u64, u64) {
    let no_route = counter(snmp, "Ip:", "OutNoRoutes") + counter_6(snmp_6, "Ip6OutNoRoutes");
    let no_port = counter(snmp, "Udp:", "NoPorts") + counter_6(snmp_6, "Udp6NoPorts");
    (no_route, no_port)
}

/// A counter of /proc/net/snmp: a line of names, then a line of values, both with the protocol first.
fn counter(text: &str, protocol: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter(|line| line.starts_with(protocol));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return 0 };
    names
        .split(' ')
        .zip(values.split(' '))
        .find(|(one, _)| *one == name)
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0)
}

/// A counter of /proc/net/snmp6: one name and value a line.
fn counter_6(text: &str, name: &str) -> u64 {
    text.lines()
        .filter_map(|line| line.strip_prefix(name))
        .find_map(|rest| rest.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_own_packets_are_no_attempts() {
        let mut packet = [0; 40];
        packet[0] = 0x45;
        packet[16] = 8;
        assert!(is_attempt(&packet));
        packet[16] = 224;
        assert!(!is_attempt(&packet));
        packet[0] = 0x60;
        packet[24] = 0x20;
        assert!(is_attempt(&packet));
        packet[24] = 0xff;
        assert!(!is_attempt(&packet));
        assert!(!is_attempt(&[]) && !is_attempt(&[0x45, 0]));
    }

    #[test]
    fn counters_are_found_by_name() {
        let text = "Ip: Forwarding OutNoRoutes\nIp: 2 7\nUdp: InDatagrams NoPorts\nUdp: 1 4\n";
        assert_eq!(counter(text, "Ip:", "OutNoRoutes"), 7);
        assert_eq!(counter(text, "Udp:", "NoPorts"), 4);
        assert_eq!(counter(text, "Udp:", "None"), 0);
        assert_eq!(counter_6("Udp6InDatagrams   \t3\nUdp6NoPorts   \t2\n", "Udp6NoPorts"), 2);
        assert_eq!(refused(text, "Ip6OutNoRoutes 3\nUdp6NoPorts 2\n"), (10, 6));
    }
}
