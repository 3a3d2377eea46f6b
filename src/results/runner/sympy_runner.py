"""Runs SymPy's `bin/test` as it would run itself and streams what happens to a report file.

    python sympy_runner.py OUT script SCRIPT [arguments]

OUT is the report's folder, see `hallmark_runner.py`. SCRIPT imports SymPy and calls `sympy.test`, whose
reporter is hooked when its module is imported. SymPy would start another process for another hash seed; here it
does not: the run's own seed holds.

Ids are the names of the test functions, as SymPy prints them. Its runner takes a file at a time, in the order of
the lines: an order cannot be given, but a selection can.

Python 3.5 and later, SymPy 0.7 and later.
"""

import sys

HERE = __file__.rpartition("/")[0]

# Executed and not imported: `sys.modules` does not know it. It takes the nonce before it imports anything.
common = type(sys)("hallmark_runner.py")
with open(HERE + "/hallmark_runner.py", "rb") as source:
    exec(compile(source.read(), source.name, "exec"), common.__dict__)
os = common.os
text = common.text

MODULES = ("sympy.testing.runtests", "sympy.utilities.runtests")


class Finder:
    """Hooks the first of the modules that is imported as a whole, and is gone."""

    def __init__(self, hook):
        self.hook = hook
        self.busy = False

    def find_spec(self, name, path=None, target=None):
        if name not in MODULES or self.busy:
            return None
        from importlib.util import find_spec

        self.busy = True
        try:
            spec = find_spec(name)
        finally:
            self.busy = False
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            # In newer versions the old name only points to the new one.
            if getattr(getattr(module, "PyTestReporter", None), "__module__", None) == name:
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                self.hook(module)

        spec.loader.exec_module = exec_module
        return spec


class Session:
    """What is reported of a run of SymPy's own runner."""

    def __init__(self, stream, limit, counters, options):
        self.stream = stream
        self.limit = limit
        self.counters = counters
        self.options = options
        self.wanted = None if options["order"] is None else set(options["order"])
        self.open = None
        self.began = 0.0
        self.before = None
        self.ids = []

    def reason(self, error):
        value = text(error[1]).strip().splitlines()
        words = getattr(error[0], "__name__", str(error[0]))
        return (words + ": " + value[0] if value else words)[:common.MESSAGE]

    def begin(self, function):
        self.open = text(function.__name__)
        self.stream.write("begin", id=self.open)
        self.began = common.monotonic()
        self.before = self.counters.begin()
        self.limit.begin()
        self.limit.arm(0.001, max(1.0, min(self.limit.seconds, 10.0)))

    def end(self, outcome, **fields):
        self.limit.disarm()
        self.limit.expired = False
        test, self.open = self.open, None
        fields = {key: value for key, value in fields.items() if value}
        seconds = round(common.monotonic() - self.began, 6)
        self.stream.write("phase", id=test, when="call", outcome=outcome, seconds=seconds, **fields)
        used = self.counters.since(self.before)
        if used:
            self.stream.write("network", id=test, used=used)
        self.stream.write("end", id=test)

    def hook(self, module):
        reporter, tests = module.PyTestReporter, module.SymPyTests
        owner = os.getpid()

        def before(kind, method):
            """Puts ours before a method, where this process is the one that reports."""

            def put(ours):
                original = getattr(kind, method)

                def both(self, *arguments, **named):
                    if os.getpid() != owner:
                        return original(self, *arguments, **named)
                    return ours(original, self, *arguments, **named)

                setattr(kind, method, both)

            return put

        def late(reporter):
            """Whether a limit that the test swallowed is now its result."""
            if self.open is None or not self.limit.expired:
                return False
            self.limit.expired = False
            message = self.limit.message()
            reporter.test_fail((AssertionError, AssertionError(message), None))
            return True

        @before(reporter, "entering_test")
        def entering_test(original, reporter, function):
            original(reporter, function)
            self.begin(function)

        @before(reporter, "test_pass")
        def test_pass(original, reporter, *arguments):
            self.limit.disarm()
            if not late(reporter):
                if self.open is not None:
                    self.end("passed")
                original(reporter, *arguments)

        @before(reporter, "test_fail")
        def test_fail(original, reporter, error):
            if self.open is not None:
                self.end("failed", reason=str(error[1]) if self.is_ours(error) else self.reason(error))
            original(reporter, error)

        @before(reporter, "test_exception")
        def test_exception(original, reporter, error):
            if self.open is not None:
                self.end("error", reason=self.reason(error))
            else:
                file = text(getattr(reporter, "_active_file", "") or "a file")
                self.stream.write("collect", id=file, outcome="error", reason=self.reason(error))
            original(reporter, error)

        @before(reporter, "test_skip")
        def test_skip(original, reporter, why=None):
            self.limit.disarm()
            if not late(reporter):
                if self.open is not None:
                    self.end("skipped", reason=None if why is None else text(why)[:common.MESSAGE])
                original(reporter, why)

        @before(reporter, "test_xfail")
        def test_xfail(original, reporter):
            self.limit.disarm()
            if not late(reporter):
                if self.open is not None:
                    self.end("skipped", xfail=True)
                original(reporter)

        @before(reporter, "test_xpass")
        def test_xpass(original, reporter, why):
            self.limit.disarm()
            if not late(reporter):
                if self.open is not None:
                    self.end("passed", xfail=True)
                original(reporter, why)

        @before(reporter, "import_error")
        def import_error(original, reporter, file, error):
            self.stream.write("collect", id=text(file), outcome="error", reason=self.reason(error))
            original(reporter, file, error)

        @before(reporter, "finish")
        def finish(original, reporter):
            self.stream.collected(self.ids)
            good = original(reporter)
            totals = {
                "passed": reporter._passed,
                "failed": len(reporter._failed),
                "error": len(reporter._exceptions),
                "skipped": reporter._skipped,
                "xfailed": reporter._xfailed,
                "xpassed": len(reporter._xpassed),
            }
            self.stream.write("finish", exit=0 if good else 1, totals=totals)
            return good

        @before(tests, "matches")
        def matches(original, tests, function):
            if not original(tests, function):
                return False
            test = text(function.__name__)
            if self.wanted is not None and self.options["only"] and test not in self.wanted:
                return False
            self.ids.append(test)
            return not self.options["collect-only"]

        # It says by this that it did not start another process.
        module.run_in_subprocess_with_hash_randomization = lambda *_arguments, **_named: False

    def is_ours(self, error):
        return str(error[1]) == self.limit.message()


def run():
    folder, mode, target = sys.argv[1:4]
    arguments = sys.argv[4:]
    options = common.options(HERE)
    stream = common.Stream(folder)
    limit = common.Limit(float(options["test-timeout"]))
    limit.failure = AssertionError
    counters = common.Counters(options["black-hole"])
    start = common.disguise(mode, target, arguments, HERE)
    session = Session(stream, limit, counters, options)
    sys.meta_path.insert(0, Finder(session.hook))
    stream.start(disobeyed=["order"] if options["order"] is not None else [])
    common.finish(stream, start)


if __name__ == "__main__":
    run()
