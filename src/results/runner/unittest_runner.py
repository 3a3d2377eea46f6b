"""Runs tests of the unittest family as their own command would and streams what happens to a report file.

    python unittest_runner.py OUT module unittest [arguments]
    python unittest_runner.py OUT script SCRIPT [arguments]

OUT is the report's folder, see `hallmark_runner.py`. SCRIPT is whatever ends in `unittest.TextTestRunner`:
Django's `runtests.py` and `manage.py test`, a file that calls `unittest.main()`.

Ids are what the runner prints (`str(test)`), byte for byte, and the first line of a docstring goes with them.
Only the outermost run of this process is reported, not the ones that tests make. With Django's `--parallel`
the parent reports for its workers (the limit per test then does not hold: the run's does); with an order there
are no workers.

Python 3.5 and later.
"""

import sys

HERE = __file__.rpartition("/")[0]

# Executed and not imported: `sys.modules` does not know it. It takes the nonce before it imports anything.
common = type(sys)("hallmark_runner.py")
with open(HERE + "/hallmark_runner.py", "rb") as source:
    exec(compile(source.read(), source.name, "exec"), common.__dict__)
os = common.os
text = common.text


def case(test):
    """The test of a part of a test. A test of its own may have a `test_case`, too."""
    is_part = isinstance(test, sys.modules["unittest.case"]._SubTest)
    return test.test_case if is_part else test


def name(test):
    return text(str(case(test)))


def reason(error):
    """Of an exception, its last line as Python prints it, less the traceback."""
    kind, value = error[0], error[1]
    try:
        lines = str(value).strip().splitlines()
    except Exception:
        lines = []
    words = getattr(kind, "__name__", str(kind))
    return text(words + ": " + lines[0] if lines else words)[:common.MESSAGE]


class Session:
    """What is reported of one run of a `TextTestRunner`."""

    def __init__(self, unittest, stream, limit, counters, options):
        self.unittest = unittest
        self.stream = stream
        self.limit = limit
        self.counters = counters
        self.options = options
        self.owner = os.getpid()
        self.active = False
        self.relayed = False
        self.totals = {}
        self.counted_from = {}
        self.success = True
        self.open = None
        self.began = 0.0
        self.seconds = None
        self.before = None
        self.collecting = None

    def tests(self, suite):
        for test in suite:
            if isinstance(test, self.unittest.BaseTestSuite):
                for one in self.tests(test):
                    yield one
            else:
                yield test

    def release(self, suite):
        """Lets go of the tests of a suite, as a run of it does."""
        for index, test in enumerate(getattr(suite, "_tests", ())):
            if isinstance(test, self.unittest.BaseTestSuite):
                self.release(test)
            if getattr(suite, "_cleanup", False):
                suite._removeTestAtIndex(index)

    def run(self, original, runner, suite):
        """In the place of `TextTestRunner.run`."""
        if self.active or os.getpid() != self.owner:
            return original(runner, suite)
        self.active = True
        had = vars(runner).get("_makeResult")
        try:
            # A suite of workers has the number of them.
            self.relayed = hasattr(suite, "processes")
            order = self.options["order"]
            if isinstance(suite, self.unittest.BaseTestSuite):
                tests = list(self.tests(suite))
                if order is not None:
                    tests, _ = common.arrange(tests, lambda test: str(test), order, self.options["only"])
                    self.release(suite)
                    suite, self.relayed = self.unittest.TestSuite(tests), False
            else:
                tests = [suite]
            self.stream.collected([str(test) for test in tests])
            self.network(None, self.collecting)
            make = runner._makeResult
            if self.options["collect-only"]:
                return make()
            made = []

            def make_result():
                result = make()
                made.append(result)
                self.watch(result)
                return result

            runner._makeResult = make_result
            # Suites let go of what ran: nobody else may hold it.
            del tests
            result = original(runner, suite)
            for one in made[:1]:
                self.finish(one)
            return result
        finally:
            self.active = False
            if had is None:
                vars(runner).pop("_makeResult", None)
            else:
                runner._makeResult = had

    def network(self, test, before):
        used = self.counters.since(before)
        if used and not self.relayed:
            self.stream.write("network", id=test, used=used)

    def watch(self, result):
        """Puts our methods before the result's own."""
        own = {}
        for method in (
            "startTest",
            "stopTest",
            "addSuccess",
            "addError",
            "addFailure",
            "addSkip",
            "addExpectedFailure",
            "addUnexpectedSuccess",
            "addSubTest",
            "addDuration",
        ):
            if hasattr(result, method):
                own[method] = getattr(result, method)

        def timed_out(test):
            """Whether a limit that the test swallowed is now its result."""
            if not self.limit.expired or isinstance(test, ErrorHolder):
                return False
            self.limit.expired = False
            error = (AssertionError, AssertionError(self.limit.message()), None)
            self.phase(test, "failed", reason=self.limit.message())
            own["addFailure"](test, error)
            return True

        def start(test):
            self.begin(test)
            own["startTest"](test)
            self.limit.begin()
            self.limit.arm(0.001, max(1.0, min(self.limit.seconds, 10.0)))

        def stop(test):
            self.limit.disarm()
            own["stopTest"](test)
            self.end(test)

        def success(test):
            self.limit.disarm()
            if not timed_out(test):
                self.phase(test, "passed")
                own["addSuccess"](test)

        def error(test, err):
            self.limit.expired = False
            if isinstance(test, ErrorHolder):
                self.stream.write("collect", id=name(test), outcome="error", reason=reason(err))
            else:
                if type(test).__name__ == "_FailedTest":
                    self.stream.write(
                        "collect", id=name(test), outcome="error", reason=reason(err), counted=False
                    )
                self.phase(test, "error", reason=reason(err))
            own["addError"](test, err)

        def failure(test, err):
            late = self.limit.expired
            self.limit.expired = False
            why = self.limit.message() if late else reason(err)
            self.phase(test, "failed", reason=why)
            own["addFailure"](test, err)

        def skip(test, why):
            if isinstance(test, ErrorHolder):
                self.stream.write("collect", id=name(test), outcome="skipped", reason=text(why))
                own["addSkip"](test, why)
            elif not timed_out(test):
                part = case(test) is not test
                self.phase(test, "skipped", reason=text(why)[:common.MESSAGE], subtest=part)
                own["addSkip"](test, why)

        def expected(test, err):
            if not timed_out(test):
                self.phase(test, "skipped", xfail=True, reason=reason(err))
                own["addExpectedFailure"](test, err)

        def unexpected(test):
            if not timed_out(test):
                self.phase(test, "passed", xfail=True)
                own["addUnexpectedSuccess"](test)

        def part(test, subtest, err):
            if err is not None:
                late = self.limit.expired
                self.limit.expired = False
                failed = issubclass(err[0], test.failureException)
                why = self.limit.message() if late else reason(err)
                self.phase(test, "failed" if failed else "error", subtest=True, reason=why)
            own["addSubTest"](test, subtest, err)

        def duration(test, elapsed):
            self.seconds = elapsed
            own["addDuration"](test, elapsed)

        ErrorHolder = self.unittest.suite._ErrorHolder
        ours = dict(
            startTest=start,
            stopTest=stop,
            addSuccess=success,
            addError=error,
            addFailure=failure,
            addSkip=skip,
            addExpectedFailure=expected,
            addUnexpectedSuccess=unexpected,
            addSubTest=part,
            addDuration=duration,
        )
        for method in own:
            setattr(result, method, ours[method])
        self.counted_from = {}

    def begin(self, test):
        fields = {"id": name(test)}
        describe = getattr(test, "shortDescription", None)
        try:
            description = describe() if describe else None
        except Exception:
            description = None
        if description:
            fields["description"] = text(description)
        self.stream.write("begin", **fields)
        self.open = fields["id"]
        self.seconds = None
        self.began = common.monotonic()
        self.before = self.counters.begin()

    def phase(self, test, outcome, **fields):
        test = name(test)
        fields = {key: value for key, value in fields.items() if value}
        self.stream.write("phase", id=test, when="call", outcome=outcome, seconds=0.0, **fields)
        if self.open != test:
            # Skipped before it began.
            self.stream.write("end", id=test)

    def end(self, test):
        test = name(test)
        seconds = common.monotonic() - self.began if self.seconds is None else self.seconds
        self.network(test, self.before)
        self.stream.write("end", id=test, seconds=round(seconds, 6))
        self.open = None

    def finish(self, result):
        printed = {}
        for word, count in (
            ("run", result.testsRun),
            ("failed", len(result.failures)),
            ("error", len(result.errors)),
            ("skipped", len(result.skipped)),
            ("xfailed", len(result.expectedFailures)),
            ("xpassed", len(result.unexpectedSuccesses)),
        ):
            printed[word] = count
            self.totals[word] = self.totals.get(word, 0) + count
        self.success = self.success and bool(result.wasSuccessful())
        self.stream.write("finish", exit=0 if self.success else 1, totals=self.totals, printed=printed)


def run():
    folder, mode, target = sys.argv[1:4]
    arguments = sys.argv[4:]
    options = common.options(HERE)
    stream = common.Stream(folder)
    limit = common.Limit(float(options["test-timeout"]))
    limit.failure = AssertionError
    counters = common.Counters(options["black-hole"])
    start = common.disguise(mode, target, arguments, HERE)
    import unittest

    session = Session(unittest, stream, limit, counters, options)
    original = unittest.TextTestRunner.run

    def run(runner, test):
        return session.run(original, runner, test)

    unittest.TextTestRunner.run = run
    stream.start()
    session.collecting = counters.begin()
    common.finish(stream, start)


if __name__ == "__main__":
    run()
