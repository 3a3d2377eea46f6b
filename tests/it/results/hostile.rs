//! Whatever the bytes are: no parser panics, and what must always hold does.

use proptest::prelude::*;

// The fuzz targets check the same.
#[path = "../../fuzz/src/check.rs"]
#[expect(unreachable_pub, reason = "public for the fuzz targets")]
mod check;

/// Events as they are in streams.
const EVENTS: [&str; 16] = [
    r#"{"event":"start","python":"3.9.1","pytest":"8.0","version":2}"#,
    r#"{"event":"start","python":"3.9.1","version":3}"#,
    r#"{"event":"collected","ids":["t.py::a","t.py::b","t.py::a"]}"#,
    r#"{"event":"collect","id":"t.py","outcome":"error","reason":null}"#,
    r#"{"event":"begin","id":"t.py::a","description":"x"}"#,
    r#"{"event":"phase","id":"t.py::a","when":"setup","outcome":"passed","seconds":0.1}"#,
    r#"{"event":"phase","id":"t.py::a","when":"call","outcome":"failed","seconds":1e308,"reason":"x"}"#,
    r#"{"event":"phase","id":"t.py::a","when":"call","outcome":"rerun","seconds":0}"#,
    r#"{"event":"phase","id":"t.py::a","when":"call","outcome":"failed","seconds":0,"subtest":true}"#,
    r#"{"event":"phase","id":"t.py::b","when":"teardown","outcome":"passed","seconds":0.1}"#,
    r#"{"event":"end","id":"t.py::a","seconds":0.5}"#,
    r#"{"event":"network","id":"t.py::a","used":[18446744073709551615,1]}"#,
    r#"{"event":"network","id":null,"used":[1,1]}"#,
    r#"{"event":"finish","exit":0,"totals":{"passed":1,"run":18446744073709551615}}"#,
    r#"{"event":"exit","exit":1}"#,
    r#"{"event":"begin"}"#,
];

/// Lines as they are in logs, which mutations then break.
const LINES: [&str; 44] = [
    "============================= test session starts ==============================",
    "t.py::a PASSED                                                           [ 33%]",
    "t.py::b[x - y z] FAILED                                                  [ 66%]",
    "t.py::C::c[\u{e4}::d] SKIPPED (not here)                                 [100%]",
    "t.py::a RERUN",
    "t.py::C::c (i=1) SUBFAIL [ 1%]",
    "[gw1] [ 50%] PASSED t.py::a ",
    "t.py::a output",
    "PASSED",
    "t.py::a PASSEDWARNING: x",
    "=================================== FAILURES ===================================",
    "==================================== ERRORS ====================================",
    "_____________ ERROR collecting tests/test_a.py _____________",
    "----------------------------- Captured stdout call -----------------------------",
    "=========================== short test summary info ============================",
    "PASSED t.py::a",
    "FAILED t.py::b[x - y z] - assert 1 == 2",
    "ERROR t.py - ImportError: x",
    "XPASS t.py::a reason",
    "SKIPPED [2] t.py:3: no",
    "(i=1) SUBFAIL t.py::C::c - x",
    "======= 1 failed, 2 passed, 1 skipped, 3 warnings in 0.12s (0:00:01) =======",
    "3 passed in 1.00 seconds",
    "test_a (m.C) ... ok",
    "test_b (m.C.test_b)",
    "First line. ... FAIL",
    "test_c (m.C) ... Testing against Django installed in '/testbed/django'",
    "System check identified no issues (0 silenced).",
    "ok",
    "  test_a (m.C) (i=1) ... ERROR",
    "setUpClass (m.C) ... ERROR",
    "======================================================================",
    "FAIL: test_a (m.C)",
    "ERROR: setUpClass (m.C)",
    "----------------------------------------------------------------------",
    "Ran 14 tests in 2.017s",
    "FAILED (failures=5, errors=4, skipped=2, expected failures=1, unexpected successes=1)",
    "sympy/a/tests/test_b.py[33] ",
    "test_d ok                                                    [OK]",
    "test_e E",
    "________ sympy/a/tests/test_b.py:test_c ________",
    "======== tests finished: 32 passed, 1 expected to fail, in 7.96 seconds ========",
    "<testsuite tests=\"2\" failures=\"1\"><testcase classname=\"a.B\" name=\"c&amp;\">",
    "<failure message=\"m\">x</failure></testcase></testsuite>",
];

/// Lines in any order, with the bytes that logs have between and in them.
fn log() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        8 => proptest::sample::select(&LINES[..]).prop_map(|line| line.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..30),
    ];
    let end = proptest::sample::select(&["\n", "\r\n", "\r", "", "\x1b[0m\n", " "][..]);
    let cut = (0_usize..2000, any::<u8>());
    (proptest::collection::vec((line, end), 0..40), proptest::collection::vec(cut, 0..4)).prop_map(
        |(lines, cuts)| {
            let mut bytes: Vec<u8> = lines
                .into_iter()
                .flat_map(|(line, end)| [line, end.as_bytes().to_vec()].concat())
                .collect();
            for (at, byte) in cuts {
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
            bytes
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        check::text(&bytes);
        check::compat(&bytes);
        check::report(&bytes);
    }

    #[test]
    fn any_log_is_read(bytes in log()) {
        check::text(&bytes);
        check::compat(&bytes);
    }

    #[test]
    fn any_stream_is_read(
        lines in proptest::collection::vec(proptest::sample::select(&EVENTS[..]), 0..30),
        cut in (0_usize..2000, any::<u8>()),
    ) {
        let mut bytes = lines.join("\n").into_bytes();
        check::report(&bytes);
        if let Some(place) = bytes.get_mut(cut.0) {
            *place = cut.1;
        }
        check::report(&bytes);
    }
}
