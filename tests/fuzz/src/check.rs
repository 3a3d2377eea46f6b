//! What must hold for the parsers of results, whatever the bytes are.

use hallmark::results::text::{compat as read_as_field, parse, telling, test_output, text_report};
use hallmark::results::{Printed, cross_check, read_report};
use hallmark::spec::Parser;
use sha2::{Digest as _, Sha256};

const FIELD: [&str; 8] = [
    "parse_log_pytest",
    "parse_log_pytest_options",
    "parse_log_pytest_v2",
    "parse_log_django",
    "parse_log_seaborn",
    "parse_log_sympy",
    "parse_log_matplotlib",
    "parse_log_nobody",
];

/// Every parser of text.
pub fn text(bytes: &[u8]) {
    for parser in Parser::ALL {
        let report = parse(parser, bytes);
        assert_eq!(report.totals.is_some(), report.totals_lines > 0);
        assert!(report.unfinished.iter().all(|id| !id.is_empty()));
        assert!(parser == Parser::Junit || report.tests.keys().all(|id| !id.contains('\n')));
        // Colours and line ends change nothing.
        if parser != Parser::Junit && !bytes.contains(&b'\r') && !bytes.contains(&0x1b) {
            assert_eq!(parse(parser, &dressed(bytes)), report, "{parser:?}");
        }
        let made = text_report(parser, bytes);
        assert_eq!(made.totals, report.totals);
        assert!(report.tests.keys().all(|id| made.tests.contains_key(id)));
        let printed = Printed { stdout: bytes, stderr: bytes };
        let problems = cross_check(&made, parser, printed, Some(0));
        assert!(made.totals.is_some() || !problems.is_empty(), "unchecked text is no result");
        let _ = telling(parser, bytes, b"");
    }
}

fn dressed(bytes: &[u8]) -> Vec<u8> {
    let mut dressed = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let (line, end) = match line.strip_suffix(b"\n") {
            Some(line) => (line, &b"\x1b[0m\r\n"[..]),
            None => (line, &b""[..]),
        };
        dressed.extend_from_slice(b"\x1b[1;31m");
        dressed.extend_from_slice(line);
        dressed.extend_from_slice(end);
    }
    dressed
}

/// The compatibility mode.
pub fn compat(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for parser in FIELD {
        let read = read_as_field(parser, test_output(&text));
        assert_eq!(read.is_some(), parser != "parse_log_nobody");
    }
}

/// The stream of a runner: as it is, and with every line signed, so that what the lines say is reached.
pub fn report(bytes: &[u8]) {
    if let Ok(report) = read_report(bytes, b"nonce") {
        assert!(report.tests.is_empty(), "nobody has the nonce");
    }
    let mut signed = Vec::new();
    let mut mac = String::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        mac = hmac(b"nonce", &[mac.as_bytes(), line]);
        signed.extend_from_slice(mac.as_bytes());
        signed.push(b' ');
        signed.extend_from_slice(line);
        signed.push(b'\n');
    }
    let Ok(report) = read_report(&signed, b"nonce") else { return };
    assert!(!report.cut);
    assert!(report.unfinished.iter().all(|id| report.tests.contains_key(id)));
    let printed = Printed { stdout: bytes, stderr: b"" };
    let _ = cross_check(&report, Parser::Pytest, printed, Some(0));
    // A line that is taken out is seen, but for the last.
    let second = signed.iter().position(|byte| *byte == b'\n').map_or(signed.len(), |at| at + 1);
    if second < signed.len()
        && let Ok(report) = read_report(&signed[second..], b"nonce")
    {
        assert!(!report.faults.is_empty());
    }
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> String {
    let pad = |with: u8| -> Vec<u8> {
        (0..64).map(|at| key.get(at).copied().unwrap_or(0) ^ with).collect()
    };
    let inner = parts.iter().fold(Sha256::new_with_prefix(pad(0x36)), Sha256::chain_update);
    hex::encode(Sha256::new_with_prefix(pad(0x5c)).chain_update(inner.finalize()).finalize())
}
