"""Runs pytest as `python -m pytest` or `pytest` would and streams what happens to a report file.

    python pytest_runner.py OUT MODE [pytest's arguments]

OUT is the report's folder, see `hallmark_runner.py`. MODE is `module` or `script`.

The plug-in is an object that only this pytest session knows. Under xdist the controller reports for its
workers, and ends the worker whose test is over its limit; with an order there are no workers.

Python 3.5 and later, pytest 3 and later.
"""

import sys

HERE = __file__.rpartition("/")[0]

# Executed and not imported: `sys.modules` does not know it. It takes the nonce before it imports anything.
common = type(sys)("hallmark_runner.py")
with open(HERE + "/hallmark_runner.py", "rb") as source:
    exec(compile(source.read(), source.name, "exec"), common.__dict__)
os = common.os
text = common.text
signal = common.signal


class Workers:
    """The limit of a test in xdist's workers, which know nothing of us: a thread of the controller kills."""

    # Before xdist 1.21 workers are called otherwise.
    STARTS = ("worker_logstart", "slave_logstart")

    def __init__(self, limit):
        self.limit = limit
        self.pids = {}
        self.running = {}
        self.killed = set()
        self.thread = None

    def add(self, gateway, config):
        """Called before the worker starts: then it still answers."""
        if not self.limit.seconds:
            return
        channel = gateway.remote_exec("import os; channel.send(os.getpid())")
        self.pids[gateway.id] = channel.receive()
        channel.waitclose()
        session = config.pluginmanager.getplugin("dsession")
        method = next((name for name in self.STARTS if hasattr(session, name)), None)
        if self.thread is None and method is not None:
            original = getattr(session, method)

            def logstart(node, nodeid, location):
                deadline = common.monotonic() + self.limit.seconds
                self.running[node.gateway.id] = deadline, text(nodeid)
                return original(node, nodeid, location)

            setattr(session, method, logstart)
            import threading

            self.thread = threading.Thread(target=self.watch)
            self.thread.daemon = True
            self.thread.start()

    def watch(self):
        while True:
            common.sleep(min(0.5, self.limit.seconds / 4.0))
            for worker, (deadline, nodeid) in list(self.running.items()):
                if common.monotonic() > deadline:
                    self.running.pop(worker, None)
                    self.killed.add(nodeid)
                    try:
                        os.kill(self.pids[worker], signal.SIGKILL)
                    except OSError:
                        pass

    def report(self, report):
        node = getattr(report, "node", None)
        if node is None:
            return
        if report.when not in ("setup", "call"):
            self.running.pop(node.gateway.id, None)
        if report.when not in ("setup", "call", "teardown") and text(report.nodeid) in self.killed:
            # The crash of its worker.
            report.longrepr = self.limit.message()


def plugin(pytest, stream, limit, counters, options):
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
        return lines[0][:common.MESSAGE]

    def word(category, report):
        """What a report counts as: by its outcome, since a suite may name categories of its own."""
        outcome = getattr(report, "outcome", None)
        when = getattr(report, "when", None)
        if when is None or hasattr(report, "context") or outcome not in ("passed", "failed", "skipped"):
            return text(category)
        expected = hasattr(report, "wasxfail")
        if outcome == "skipped":
            return "xfailed" if expected else "skipped"
        if outcome == "failed":
            return "error" if when in ("setup", "teardown", "collect") else "failed"
        if when != "call":
            return ""
        return "xpassed" if expected else "passed"

    def disobeyed(config):
        """The options that do not hold in this session."""
        workers = config.pluginmanager.getplugin("dsession")
        if workers is not None:
            kept = any(hasattr(workers, name) for name in Workers.STARTS)
        else:
            kept = not any(getattr(config.option, name, False) for name in ("forked", "boxed"))
        return [] if kept or not limit.seconds else ["test-timeout"]

    order = options["order"]

    class Recorder(object):
        def __init__(self):
            self.collections = set()
            self.collecting = None
            self.workers = Workers(limit)

        # Before xdist's own, which makes workers. They would take tests as they become free.
        @pytest.hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_cmdline_main(self, config):
            if order is not None:
                for name, value in (("numprocesses", 0), ("tx", []), ("dist", "no"), ("distload", False)):
                    if hasattr(config.option, name):
                        setattr(config.option, name, value)
            yield

        @pytest.hookimpl(tryfirst=True)
        def pytest_sessionstart(self, session):
            self.collecting = counters.begin()
            stream.start(pytest=pytest.__version__, disobeyed=disobeyed(session.config))

        def pytest_collectreport(self, report):
            if report.failed:
                stream.write("collect", id=text(report.nodeid), outcome="error", reason=reason(report))
            elif report.skipped:
                stream.write("collect", id=text(report.nodeid), outcome="skipped", reason=reason(report))

        # Here and not with the other changes of the list: this is after them all, pytest's own sorting by
        # the scopes of fixtures included.
        @pytest.hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_collection_finish(self, session):
            items = getattr(session, "items", None)
            if order is not None and items is not None:
                items[:], left = common.arrange(items, lambda item: item.nodeid, order, options["only"])
                if left:
                    session.config.hook.pytest_deselected(items=left)
            yield
            stream.collected([item.nodeid for item in items or ()])
            used = counters.since(self.collecting)
            if used:
                stream.write("network", id=None, used=used)

        @pytest.hookimpl(optionalhook=True)
        def pytest_xdist_node_collection_finished(self, node, ids):
            names = tuple(ids)
            if names not in self.collections:
                self.collections.add(names)
                stream.collected(names)

        @pytest.hookimpl(optionalhook=True)
        def pytest_xdist_newgateway(self, gateway):
            self.workers.add(gateway, self.config)

        def pytest_configure(self, config):
            self.config = config

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_logstart(self, nodeid, location):
            stream.write("begin", id=text(nodeid))

        # Since pytest 3.4; before, the tear-down is the end.
        @pytest.hookimpl(tryfirst=True, optionalhook=True)
        def pytest_runtest_logfinish(self, nodeid):
            stream.write("end", id=text(nodeid))

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_logreport(self, report):
            self.workers.report(report)
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

        # Where the test runs: the controller of workers has no part in it.
        @pytest.hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_runtest_protocol(self, item, nextitem):
            before = counters.begin()
            yield
            used = counters.since(before)
            if used:
                stream.write("network", id=text(item.nodeid), used=used)

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
            totals, printed = None, None
            if stats is not None:
                totals, printed = {}, {}
                for category, reports in stats.items():
                    for one in reports if category else ():
                        if getattr(one, "count_towards_summary", True):
                            for counts, name in ((totals, word(category, one)), (printed, text(category))):
                                counts[name] = counts.get(name, 0) + 1
                totals.pop("", None)
            stream.write("finish", exit=int(exitstatus), totals=totals, printed=printed)

    return Recorder()


def script():
    """The file that `pytest` starts."""
    import shutil

    return shutil.which("pytest") or os.path.join(os.path.dirname(sys.executable), "pytest")


def run():
    folder, mode = sys.argv[1:3]
    arguments = sys.argv[3:]
    options = common.options(HERE)
    for name in ("continue-on-collection-errors", "collect-only"):
        if options[name] and "--" + name not in arguments:
            arguments.insert(0, "--" + name)
    stream = common.Stream(folder)
    limit = common.Limit(float(options["test-timeout"]))
    counters = common.Counters(options["black-hole"])
    common.disguise(mode, "pytest" if mode == "module" else script(), arguments, HERE)
    import pytest

    limit.failure = pytest.fail.Exception
    recorder = plugin(pytest, stream, limit, counters, options)
    code = int(pytest.main(arguments, plugins=[recorder]) or 0)
    stream.write("exit", exit=code)
    try:
        sys.stdout.flush()
    except OSError:
        code = 1
    sys.exit(code)


if __name__ == "__main__":
    run()
