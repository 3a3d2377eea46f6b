"""Runs pytest as `python -m pytest` or `pytest` would and streams what happens to a report file.

    python pytest_runner.py OUT MODE LIMIT [pytest's arguments]

OUT is a folder with `nonce` and `report`. The nonce is read and removed before any code of the repository
is loaded; each line of the report carries a MAC that is keyed by it and chained to the line before, so
that lines cannot be added, changed, dropped or swapped by whoever only sees the file. MODE is `module` or
`script`. LIMIT is the wall time of one test in seconds, 0 for none.

Nothing of this reaches child processes: no environment variable is set, the file is close-on-exec, a
forked copy writes nothing, and the plug-in is an object that only this pytest session knows. Under xdist the
controller reports for its workers (the limit per test then does not hold: the run's does).

Python 3.5 and later, pytest 3 and later.
"""

import hashlib
import hmac
import json
import os
import signal
import sys
import time
import types

VERSION = 1
IDS_PER_LINE = 500
MESSAGE = 400


def text(value):
    """A string without lone surrogates: those become the six characters of their escape."""
    if not isinstance(value, str):
        value = str(value)
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


class Stream:
    """The report file: append-only, one write per line, only by the process that opened it."""

    def __init__(self, folder):
        nonce = os.path.join(folder, "nonce")
        with open(nonce, "rb") as file:
            self.key = file.read()
        os.unlink(nonce)
        self.path = os.path.join(folder, "report")
        self.owner = os.getpid()
        self.mac = b""
        self.fd = self.open()
        self.identity = self.identify()

    def open(self):
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def identify(self):
        status = os.fstat(self.fd)
        return status.st_dev, status.st_ino

    def write(self, event, **fields):
        if os.getpid() != self.owner:
            return
        fields["event"] = event
        body = json.dumps(fields, ensure_ascii=True, sort_keys=True).encode("ascii")
        self.mac = hmac.new(self.key, self.mac + body, hashlib.sha256).hexdigest().encode("ascii")
        line = self.mac + b" " + body + b"\n"
        # A test may have closed every descriptor, and another file may have ours now.
        try:
            held = self.identify() == self.identity
        except OSError:
            held = False
        if not held:
            self.fd = self.open()
            if self.identify() != self.identity:
                raise OSError("the report file was replaced")
        while line:
            line = line[os.write(self.fd, line):]


class HardLimit:
    """A kernel timer that ends the process where Python code no longer runs: no thread, no second process.

    SIGXCPU, whose default is to kill, and which says "a limit was exceeded".
    """

    # timer_create, timer_settime.
    NUMBERS = {"x86_64": (222, 223), "aarch64": (107, 110)}

    def __init__(self):
        self.timer = None
        try:
            import ctypes
        except ImportError:
            return
        numbers = self.NUMBERS.get(os.uname().machine)
        if numbers is None or sys.platform != "linux":
            return
        self.ctypes = ctypes
        self.syscall = ctypes.CDLL(None, use_errno=True).syscall
        self.settime = numbers[1]
        # struct sigevent: value, signal, SIGEV_SIGNAL, padding to 64 bytes.
        event = (ctypes.c_int * 16)(0, 0, int(signal.SIGXCPU), 0)
        timer = ctypes.c_int(-1)
        if self.syscall(numbers[0], time.CLOCK_MONOTONIC, event, ctypes.byref(timer)) == 0:
            self.timer = timer

    def set(self, seconds):
        if self.timer is None:
            return
        # struct itimerspec: interval, value.
        whole = int(seconds)
        value = (self.ctypes.c_long * 4)(0, 0, whole, int((seconds - whole) * 1e9))
        self.syscall(self.settime, self.timer, 0, value, None)


class Limit:
    """The limit of one test: an exception first, again if it was swallowed, and the end of the process at last."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.deadline = 0.0
        self.expired = False
        self.failure = None
        self.owner = os.getpid()
        self.hard = HardLimit() if seconds else None

    def begin(self):
        self.expired = False
        self.deadline = time.monotonic() + self.seconds

    def arm(self, least):
        if not self.seconds or os.getpid() != self.owner:
            return
        left = max(self.deadline - time.monotonic(), least)
        again = max(1.0, self.seconds / 10.0)
        try:
            # A timer that runs already is the suite's own (pytest-timeout): it stays.
            if signal.getitimer(signal.ITIMER_REAL)[0] == 0:
                signal.signal(signal.SIGALRM, self.expire)
                signal.setitimer(signal.ITIMER_REAL, left, again)
        except ValueError:
            pass  # Not the main thread.
        self.hard.set(left + max(3.0, self.seconds / 2.0))

    def disarm(self):
        if not self.seconds or os.getpid() != self.owner:
            return
        self.hard.set(0)
        try:
            # Another handler there is not ours to take away.
            if signal.getsignal(signal.SIGALRM) == self.expire:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
        except ValueError:
            pass

    def message(self):
        return "timeout: the test ran longer than {:g} s".format(self.seconds)

    def expire(self, _signal, _frame):
        if os.getpid() != self.owner:
            return
        self.expired = True
        raise self.failure(self.message())


def plugin(pytest, stream, limit):
    """The plug-in, made in a function so that no module of it can be imported by its name."""

    def reason(report):
        longrepr = getattr(report, "longrepr", None)
        if not longrepr:
            return None
        crash = getattr(longrepr, "reprcrash", None)
        if crash is not None:
            longrepr = crash.message
        elif isinstance(longrepr, tuple):
            longrepr = longrepr[-1]
        else:
            # Of a traceback as text, the last line tells most.
            longrepr = (str(longrepr).strip().splitlines() or [""])[-1]
        lines = text(longrepr).strip().splitlines() or [""]
        return lines[0][:MESSAGE]

    class Recorder(object):
        def __init__(self):
            self.collections = set()

        def collected(self, ids):
            ids = [text(name) for name in ids]
            # Also when there is none: that collection ended is the news.
            for start in range(0, max(len(ids), 1), IDS_PER_LINE):
                stream.write("collected", ids=ids[start:start + IDS_PER_LINE])

        @pytest.hookimpl(tryfirst=True)
        def pytest_sessionstart(self, session):
            stream.write(
                "start",
                version=VERSION,
                python="{}.{}.{}".format(*sys.version_info[:3]),
                pytest=pytest.__version__,
            )

        def pytest_collectreport(self, report):
            if report.failed:
                stream.write("collect", id=text(report.nodeid), outcome="error", reason=reason(report))
            elif report.skipped:
                stream.write("collect", id=text(report.nodeid), outcome="skipped", reason=reason(report))

        @pytest.hookimpl(trylast=True)
        def pytest_collection_finish(self, session):
            self.collected([item.nodeid for item in getattr(session, "items", ())])

        @pytest.hookimpl(optionalhook=True)
        def pytest_xdist_node_collection_finished(self, node, ids):
            names = tuple(ids)
            if names not in self.collections:
                self.collections.add(names)
                self.collected(names)

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_logstart(self, nodeid, location):
            stream.write("begin", id=text(nodeid))

        # Since pytest 3.4; before, the tear-down is the end.
        @pytest.hookimpl(tryfirst=True, optionalhook=True)
        def pytest_runtest_logfinish(self, nodeid):
            stream.write("end", id=text(nodeid))

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_logreport(self, report):
            fields = dict(
                id=text(report.nodeid),
                when=text(report.when),
                outcome=text(report.outcome),
                seconds=round(float(getattr(report, "duration", 0.0)), 6),
            )
            if hasattr(report, "wasxfail"):
                fields["xfail"] = True
            if hasattr(report, "context"):
                fields["subtest"] = True
            if report.outcome != "passed":
                fields["reason"] = reason(report)
            stream.write("phase", **fields)

        @pytest.hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_runtest_setup(self, item):
            limit.begin()
            limit.arm(0.001)
            try:
                yield
            finally:
                limit.disarm()

        @pytest.hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_runtest_call(self, item):
            limit.arm(0.001)
            try:
                yield
            finally:
                limit.disarm()

        @pytest.hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_runtest_teardown(self, item):
            # A test that used up its time still gets some to clean up.
            limit.arm(min(limit.seconds, 10.0))
            try:
                yield
            finally:
                limit.disarm()

        @pytest.hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_runtest_makereport(self, item, call):
            outcome = yield
            if limit.expired:
                # The test may have swallowed the exception and gone on to pass, or to be "skipped".
                limit.expired = False
                report = outcome.get_result()
                report.outcome = "failed"
                if hasattr(report, "wasxfail"):
                    del report.wasxfail
                report.longrepr = limit.message()

        @pytest.hookimpl(trylast=True)
        def pytest_sessionfinish(self, session, exitstatus):
            reporter = session.config.pluginmanager.getplugin("terminalreporter")
            stats = getattr(reporter, "stats", None)
            totals = None
            if stats is not None:
                totals = {
                    text(name): len([one for one in reports if getattr(one, "count_towards_summary", True)])
                    for name, reports in stats.items()
                    if name
                }
            stream.write("finish", exit=int(exitstatus), totals=totals)

    return Recorder()


def disguise(mode):
    """Makes `sys.path`, `sys.argv` and `__main__` what they are without this file."""
    here = os.path.dirname(os.path.abspath(__file__))
    first = sys.path[0] if sys.path else None
    ours = first is not None and os.path.abspath(first or ".") == here
    main = types.ModuleType("__main__")
    if mode == "module":
        if ours:
            sys.path[0] = os.getcwd()
        from importlib.util import find_spec

        spec = find_spec("pytest")
        if spec is None:
            sys.exit("{}: No module named pytest".format(sys.executable))
        # Before 6.0 pytest is a module and not a package.
        spec = find_spec("pytest.__main__") if spec.submodule_search_locations else spec
        main.__file__ = spec.origin
        main.__spec__ = spec
        main.__loader__ = spec.loader
        main.__package__ = spec.parent
    else:
        import shutil

        script = shutil.which("pytest") or os.path.join(os.path.dirname(sys.executable), "pytest")
        if ours:
            sys.path[0] = os.path.dirname(os.path.realpath(script))
        main.__file__ = script
        main.__spec__ = None
    main.__builtins__ = __builtins__
    sys.modules["__main__"] = main
    return main.__file__


def run():
    folder, mode, seconds = sys.argv[1:4]
    arguments = sys.argv[4:]
    stream = Stream(folder)
    limit = Limit(float(seconds))
    sys.argv[:] = [disguise(mode)] + arguments
    import pytest

    limit.failure = pytest.fail.Exception
    code = int(pytest.main(arguments, plugins=[plugin(pytest, stream, limit)]) or 0)
    stream.write("exit", exit=code)
    try:
        sys.stdout.flush()
    except OSError:
        code = 1
    sys.exit(code)


if __name__ == "__main__":
    run()
