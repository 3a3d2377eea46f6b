//! What each test sends to the network, in real containers.

use hallmark::results::{NetworkUse, Outcome};
use hallmark::runtime::Gap;
use hallmark::verify::Phase;

use crate::verify::support::{Bench, adds, spec};

const TESTS: &str = r#"import socket
import time


def connect(family, address):
    one = socket.socket(family, socket.SOCK_STREAM)
    one.settimeout(0.2)
    try:
        one.connect((address, 80))
    except OSError:
        pass
    finally:
        one.close()


def test_quiet():
    pass


def test_quiet_for_long():
    # Long enough for the kernel's own packets: router solicitations, multicast reports.
    time.sleep(5)


def test_talks_to_itself():
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(1)
    client = socket.create_connection(server.getsockname())
    client.sendall(b"x" * 10000)
    client.close()
    server.close()
    connect(socket.AF_INET, "127.0.0.1")
    connect(socket.AF_INET6, "::1")


def test_connects():
    connect(socket.AF_INET, "198.51.100.7")


def test_connects_over_six():
    connect(socket.AF_INET6, "2001:db8:1::7")


def test_looks_a_name_up():
    try:
        socket.gethostbyname("example.org")
    except OSError:
        pass


def test_knows_itself():
    socket.gethostbyname("localhost")


def test_both_and_fails():
    test_connects()
    test_looks_a_name_up()
    assert False


def test_quiet_at_last():
    pass
"#;

#[test]
fn online_each_tests_own_use_is_counted() {
    let Some(bench) = Bench::new(&[("README", "")]) else { return };
    let record = bench.run(&spec(), Phase::Pre, 0, ["", &adds("test_net.py", TESTS)]);
    assert_eq!(record.outcome.as_str(), "completed", "{record:?}");
    if record.gaps.contains(&Gap::BlackHole) {
        return crate::support::say_skipped("this host has no black hole");
    }
    let used = |name: &str| record.tests[&format!("test_net.py::{name}")].network;
    for name in ["quiet", "quiet_for_long", "talks_to_itself", "knows_itself", "quiet_at_last"] {
        assert_eq!(used(&format!("test_{name}")), None, "{name}");
    }
    for name in ["connects", "connects_over_six"] {
        assert_eq!(used(&format!("test_{name}")), Some(NetworkUse { packets: 1, lookups: 0 }));
    }
    let looked = used("test_looks_a_name_up").unwrap();
    assert!(looked.packets == 0 && looked.lookups >= 1, "{looked:?}");
    let both = used("test_both_and_fails").unwrap();
    assert_eq!(both, NetworkUse { packets: 1, lookups: looked.lookups });
    assert_eq!(record.outcome_of("test_net.py::test_both_and_fails"), Outcome::Failed);
    // What the runtime counted in all.
    let all = record.network_attempts.unwrap();
    assert_eq!((all.packets, all.lookups), (3, 2 * looked.lookups));
}
