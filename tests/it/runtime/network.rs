//! What a run sees of the network.

use hallmark::runtime::embedded::{Hole, Options};
use hallmark::runtime::{Gap, Network, NetworkAttempts};

use super::scaffold::{Scaffold, say_skipped, scaffold_with, stderr, stdout};

/// Connects for at most a second and says how it ended.
const CONNECT: &str = r#"
use Socket qw(:all);
sub attempt {
    my ($family, $address) = @_;
    socket(my $s, $family, SOCK_STREAM, 0) or return "socket: " . ($!+0);
    my $to = $family == AF_INET ? pack_sockaddr_in(9, $address) : pack_sockaddr_in6(9, $address);
    my $end = eval {
        local $SIG{ALRM} = sub { die "timeout\n" };
        alarm 1;
        my $ok = connect($s, $to) ? "connected" : "errno " . ($!+0);
        alarm 0;
        $ok
    };
    return $end // "timeout";
}
print attempt(AF_INET, inet_aton("198.51.100.7")), "\n";
print attempt(AF_INET6, inet_pton(AF_INET6, "2001:db8:1::7")), "\n";
print attempt(AF_INET, inet_aton("127.0.0.1")), "\n";
print attempt(AF_INET6, inet_pton(AF_INET6, "::1")), "\n";
"#;

const REFUSED: &str = "errno 111\n";

#[test]
fn either_device_makes_a_black_hole() {
    for black_holes in [&[Hole::Tun], &[Hole::Veth]] {
        let Some(scaffold) = scaffold_with(Options { black_holes, ..Options::default() }) else {
            return;
        };
        a_connect_times_out_as_behind_a_firewall_and_is_counted(&scaffold);
    }
}

pub(super) fn a_connect_times_out_as_behind_a_firewall_and_is_counted(scaffold: &Scaffold) {
    let mut spec = scaffold.sh("");
    spec.argv = ["perl", "-e", CONNECT].map(str::to_owned).to_vec();
    let log = scaffold.run(&spec);
    if log.gaps.contains(&Gap::BlackHole) {
        return say_skipped("this host has no black hole");
    }
    assert_eq!(stdout(&log), format!("timeout\ntimeout\n{REFUSED}{REFUSED}"), "{}", stderr(&log));
    let attempts = log.network_attempts.unwrap();
    assert!((2..=6).contains(&attempts.packets), "a packet or some repeats each: {attempts:?}");
    assert_eq!(attempts.lookups, 0);
}

pub(super) fn a_build_steps_connect_fails_at_once(scaffold: &Scaffold) {
    let mut spec = scaffold.sh("");
    spec.argv = ["perl", "-e", CONNECT].map(str::to_owned).to_vec();
    spec.network = Network::Unreachable;
    let log = scaffold.run(&spec);
    let unreachable = "errno 101\n";
    assert_eq!(stdout(&log), format!("{unreachable}{unreachable}{REFUSED}{REFUSED}"));
    assert_eq!(log.network_attempts, Some(NetworkAttempts { packets: 2, lookups: 0 }));
}

pub(super) fn names_fail_at_once_and_are_counted(scaffold: &Scaffold) {
    for network in [Network::None, Network::Unreachable] {
        let mut spec = scaffold.sh("");
        let script = "my @a = gethostbyname('example.org'); print scalar @a; \
                      print defined gethostbyname('localhost') ? ' local' : ' none'; \
                      print defined gethostbyname('hallmark') ? ' own' : ' none'";
        spec.argv = ["perl", "-e", script].map(str::to_owned).to_vec();
        spec.network = network;
        let log = scaffold.run(&spec);
        assert_eq!(stdout(&log), "0 local own", "{}", stderr(&log));
        assert!(log.wall.as_secs() < 2, "{log:?}");
        assert!(log.network_attempts.unwrap().lookups >= 1, "{log:?}");
    }
}

pub(super) fn a_quiet_run_has_no_attempts(scaffold: &Scaffold) {
    let log = scaffold.run(&scaffold.sh("sleep 0.3"));
    assert_eq!(log.network_attempts, Some(NetworkAttempts::default()));
}

#[test]
fn a_host_without_the_device_has_a_gap() {
    let Some(scaffold) = scaffold_with(Options { black_holes: &[], ..Options::default() }) else {
        return;
    };
    let mut spec = scaffold.sh("");
    spec.argv = ["perl", "-e", CONNECT].map(str::to_owned).to_vec();
    let log = scaffold.run(&spec);
    assert!(stdout(&log).starts_with("errno 101\n"));
    assert!(log.gaps.contains(&Gap::BlackHole));
    spec.network = Network::Unreachable;
    assert!(!scaffold.run(&spec).gaps.contains(&Gap::BlackHole));
}

pub(super) fn the_hosts_network_is_the_hosts(scaffold: &Scaffold) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!(
        "use Socket; socket(my $s, AF_INET, SOCK_STREAM, 0); \
         print connect($s, pack_sockaddr_in({port}, inet_aton('127.0.0.1'))) ? 'yes' : 'no'"
    );
    let mut spec = scaffold.sh("");
    spec.argv = ["perl", "-e", &script].map(str::to_owned).to_vec();
    spec.network = Network::Host;
    let log = scaffold.run(&spec);
    assert_eq!(stdout(&log), "yes", "{}", stderr(&log));
    assert_eq!(log.network_attempts, None);
    spec.network = Network::None;
    assert_eq!(stdout(&scaffold.run(&spec)), "no", "the host's loopback is not the run's");
}
