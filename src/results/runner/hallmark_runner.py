"""What every runner of ours shares: the report's stream, the options, the order, the limit of a test, the network's counters.

The stream is a file of lines. OUT is a folder with `nonce` and `report`; the nonce is read and removed before
anything is imported, and each line carries a MAC that is keyed by it and chained to the line
before, so that lines cannot be added, changed, dropped or swapped by whoever only sees the file.

`options.json` beside this file says how tests run; without it everything is as the runner does it by itself.

This file is executed by the runners and never imported: no name of it is in `sys.modules`. Nothing of it
reaches child processes: no environment variable is set, the files are close-on-exec, and a forked copy writes
nothing.

Python 3.5 and later.
"""

import posix
import sys


def take_nonce(folder):
    """The nonce, read and removed with what is part of the interpreter itself."""
    path = folder + "/nonce"
    fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    nonce = posix.read(fd, 4096)
    posix.close(fd)
    posix.unlink(path)
    return nonce


NONCE = take_nonce(sys.argv[1])

# PYTHONPATH comes before the standard library, and its folders may be the repository's: a file of it that is
# called `hmac.py` is not what signs the report.
PATH = sys.path[:]
import os

STANDARD = os.path.dirname(os.__file__)
sys.path[:0] = [STANDARD, os.path.join(STANDARD, "lib-dynload")]
import builtins
import hashlib
import hmac
import json
import signal
import time
import types
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec

try:
    import ctypes
except ImportError:
    ctypes = None
sys.path[:] = PATH

# Taken now: tests put their own clocks in their place.
monotonic = time.monotonic
sleep = time.sleep

VERSION = 2
IDS_PER_LINE = 500
MESSAGE = 400


def options(folder):
    """How tests run: what the host wrote, over what holds where it wrote nothing."""
    read = {
        "test-timeout": 0,
        "continue-on-collection-errors": False,
        "order": None,
        "only": False,
        "collect-only": False,
        "black-hole": None,
    }
    try:
        with open(os.path.join(folder, "options.json"), "rb") as file:
            read.update(json.loads(file.read().decode("utf-8")))
    except FileNotFoundError:
        pass
    return read


def arrange(items, name, order, only):
    """The items in the order of their ids in `order`, then the others, and the items that are left out.

    Of items that share an id, each mention takes the next and the last mention all that are left.
    """
    waiting = {}
    for item in items:
        waiting.setdefault(text(name(item)), []).append(item)
    mentions = {}
    for one in order:
        mentions[one] = mentions.get(one, 0) + 1
    arranged = []
    for one in order:
        mentions[one] -= 1
        held = waiting.get(one, [])
        take = 1 if mentions[one] else len(held)
        arranged.extend(held[:take])
        del held[:take]
    taken = set(map(id, arranged))
    others = [item for item in items if id(item) not in taken]
    return (arranged, others) if only else (arranged + others, [])


def text(value):
    """A string without lone surrogates: those become the six characters of their escape."""
    if not isinstance(value, str):
        value = str(value)
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def identify(fd):
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


class Stream:
    """The report file: append-only, one write per line, only by the process that opened it."""

    def __init__(self, folder):
        self.key = NONCE
        self.path = os.path.join(folder, "report")
        self.owner = os.getpid()
        self.mac = b""
        self.fd = self.open()
        self.identity = identify(self.fd)

    def open(self):
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def start(self, **fields):
        python = "{}.{}.{}".format(*sys.version_info[:3])
        self.write("start", version=VERSION, python=python, **fields)

    def collected(self, ids):
        ids = [text(name) for name in ids]
        # Also when there is none: that collection ended is the news.
        for start in range(0, max(len(ids), 1), IDS_PER_LINE):
            self.write("collected", ids=ids[start:start + IDS_PER_LINE])

    def write(self, event, **fields):
        if os.getpid() != self.owner:
            return
        fields["event"] = event
        body = json.dumps(fields, ensure_ascii=True, sort_keys=True).encode("ascii")
        self.mac = hmac.new(self.key, self.mac + body, hashlib.sha256).hexdigest().encode("ascii")
        line = self.mac + b" " + body + b"\n"
        # A test may have closed every descriptor, and another file may have ours now.
        try:
            held = identify(self.fd) == self.identity
        except OSError:
            held = False
        if not held:
            self.fd = self.open()
            if identify(self.fd) != self.identity:
                raise OSError("the report file was replaced")
        while line:
            line = line[os.write(self.fd, line):]


class Timer:
    """A kernel timer that sends a signal to this process: no thread, no second process, and none of the timers
    that `alarm` and `setitimer` set, which are the tests' own."""

    # timer_create, timer_settime.
    NUMBERS = {"x86_64": (222, 223), "aarch64": (107, 110)}

    def __init__(self, sent):
        self.timer = None
        numbers = self.NUMBERS.get(os.uname().machine)
        if ctypes is None or numbers is None or sys.platform != "linux":
            return
        self.syscall = ctypes.CDLL(None, use_errno=True).syscall
        self.settime = numbers[1]
        # struct sigevent: value, signal, SIGEV_SIGNAL, padding to 64 bytes.
        event = (ctypes.c_int * 16)(0, 0, int(sent), 0)
        timer = ctypes.c_int(-1)
        if self.syscall(numbers[0], time.CLOCK_MONOTONIC, event, ctypes.byref(timer)) == 0:
            self.timer = timer

    def set(self, seconds, again=0):
        if self.timer is None:
            return
        # struct itimerspec: interval, value.
        parts = [int(part) for one in (again, seconds) for part in (one, one % 1 * 1e9)]
        value = (ctypes.c_long * 4)(*parts)
        self.syscall(self.settime, self.timer, 0, value, None)


class Limit:
    """The limit of one test: an exception first, again if it was swallowed, and the end of the process at last."""

    # A signal that has no other use.
    SOFT = signal.SIGRTMAX - 5
    # Its default is to kill, and it says "a limit was exceeded": where Python code no longer runs.
    HARD = signal.SIGXCPU

    def __init__(self, seconds):
        self.seconds = seconds
        self.deadline = 0.0
        self.armed = False
        self.until = 0.0
        self.expired = False
        self.failure = None
        self.owner = os.getpid()
        self.soft = Timer(self.SOFT) if seconds else None
        self.hard = Timer(self.HARD) if seconds else None

    def begin(self):
        self.expired = False
        self.deadline = monotonic() + self.seconds

    def arm(self, least, again=None):
        if not self.seconds or os.getpid() != self.owner:
            return
        left = max(self.deadline - monotonic(), least)
        again = again or max(1.0, self.seconds / 10.0)
        self.until = monotonic() + left
        self.armed = True
        try:
            if self.soft.timer is not None:
                signal.signal(self.SOFT, self.expire)
                self.soft.set(left, again)
            # A timer that runs already is the suite's own (pytest-timeout): it stays.
            elif signal.getitimer(signal.ITIMER_REAL)[0] == 0:
                signal.signal(signal.SIGALRM, self.expire)
                signal.setitimer(signal.ITIMER_REAL, left, again)
        except ValueError:
            pass  # Not the main thread.
        self.hard.set(left + max(3.0, self.seconds / 2.0))

    def disarm(self):
        if not self.seconds or os.getpid() != self.owner:
            return
        self.hard.set(0)
        # Its handler stays: a signal may be on its way, and kills where nobody takes it.
        self.soft.set(0)
        if self.armed and monotonic() > self.until:
            # Also where the test kept the signal away.
            self.expired = True
        self.armed = False
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
        if not self.armed or os.getpid() != self.owner:
            return
        self.expired = True
        raise self.failure(self.message())


def disguise(mode, target, arguments, folder):
    """Makes `sys.path`, `sys.argv` and `__main__` what they are without a runner; returns what starts it."""
    first = sys.path[0] if sys.path else None
    ours = first is not None and os.path.abspath(first or ".") == folder
    main = types.ModuleType("__main__")
    main.__builtins__ = builtins
    if mode == "module":
        if ours:
            sys.path[0] = os.getcwd()
        spec = find_spec(target)
        if spec is not None and spec.submodule_search_locations:
            spec = find_spec(target + ".__main__")
        if spec is None:
            sys.exit("{}: No module named {}".format(sys.executable, target))
        main.__file__ = spec.origin
        main.__spec__ = spec
        main.__loader__ = spec.loader
        main.__package__ = spec.parent
    else:
        if ours:
            sys.path[0] = os.path.dirname(os.path.realpath(target))
        main.__file__ = os.path.abspath(target) if sys.version_info >= (3, 9) else target
        main.__cached__ = None
        main.__loader__ = SourceFileLoader("__main__", main.__file__)
    sys.modules["__main__"] = main
    sys.argv[:] = [main.__file__ if mode == "module" else target] + arguments

    def start():
        if mode == "module":
            code = main.__loader__.get_code(main.__spec__.name)
        else:
            try:
                with open(target, "rb") as file:
                    code = compile(file.read(), main.__file__, "exec", dont_inherit=True)
            except OSError as error:
                sys.exit("{}: can't open file {!r}: {}".format(sys.executable, target, error))
        exec(code, main.__dict__)

    return start


def finish(stream, start):
    """Runs the command to its end and ends as it did."""
    code = 0
    try:
        start()
    except SystemExit as stop:
        code = stop.code
        if code is None:
            code = 0
        elif not isinstance(code, int):
            print(code, file=sys.stderr)
            code = 1
    except BaseException:
        stream.write("exit", exit=1)
        raise
    stream.write("exit", exit=code & 0xFF)
    try:
        sys.stdout.flush()
    except OSError:
        code = 1
    sys.exit(code)


class Counters:
    """What this network namespace sent towards other machines, and the look-ups that nobody answered.

    The files stay open and are read from their start: some ten microseconds a test. Without a black hole,
    whose name the host gives, nothing is counted: the traffic of a host's network is not the tests'.
    """

    # How long packets may take to reach the black hole, whose reader is another process.
    PATIENCE = 0.05

    def __init__(self, device):
        self.owner = os.getpid()
        self.device = device
        self.files = {}
        self.paths = []
        if device is not None:
            names = ("dev", "snmp", "snmp6", "netstat", "dev_snmp6/" + device)
            self.paths = ["/proc/self/net/" + name for name in names]

    def read(self, path):
        fd, identity = self.files.get(path, (-1, None))
        try:
            # A test may have closed every descriptor, and another file may have ours now.
            held = fd >= 0 and identify(fd) == identity
        except OSError:
            held = False
        try:
            if not held:
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                self.files[path] = fd, identify(fd)
            return os.pread(fd, 1 << 16, 0)
        except OSError:
            return b""  # Without IPv6, or without the device.

    @staticmethod
    def rows(raw, protocol):
        """Counters that stand in a line of names and a line of values."""
        lines = [line.split() for line in raw.splitlines() if line.startswith(protocol)]
        return dict(zip(lines[0], lines[1])) if len(lines) == 2 else {}

    @staticmethod
    def sent(raw, device):
        """Packets that left through a device."""
        for line in raw.splitlines():
            name, colon, values = line.partition(b":")
            if colon and name.strip() == device.encode():
                return int(values.split()[9])
        return 0

    def count(self, raw):
        """Packets that reached the hole, packets that were sent there, look-ups."""
        dev, snmp, snmp6, netstat, own6 = raw
        ip, udp = self.rows(snmp, b"Ip:"), self.rows(snmp, b"Udp:")
        more = self.rows(netstat, b"IpExt:")
        ip6 = dict(line.split(None, 1) for line in snmp6.splitlines())
        own6 = dict(line.split(None, 1) for line in own6.splitlines())
        # The kernel itself sends multicast (IGMP, MLD, router solicitations) to whatever device it finds.
        own = int(own6.get(b"Ip6OutMcastPkts", 0)) + int(more.get(b"OutMcastPkts", 0))
        nowhere = int(ip.get(b"OutNoRoutes", 0)) + int(ip6.get(b"Ip6OutNoRoutes", 0))
        requests = int(ip.get(b"OutRequests", 0)) + int(ip6.get(b"Ip6OutRequests", 0))
        lookups = int(udp.get(b"NoPorts", 0)) + int(ip6.get(b"Udp6NoPorts", 0))
        arrived = self.sent(dev, self.device) - own + nowhere
        return arrived, requests - self.sent(dev, "lo") - own + nowhere, lookups

    def begin(self):
        if self.device is None or os.getpid() != self.owner:
            return None
        return [self.read(path) for path in self.paths]

    def since(self, before):
        """Packets and look-ups since `begin`; None where there were none."""
        if before is None or os.getpid() != self.owner:
            return None
        end = monotonic() + self.PATIENCE
        while True:
            after = self.begin()
            if after == before:
                return None
            arrived, sent, lookups = [
                now - then for now, then in zip(self.count(after), self.count(before))
            ]
            if arrived >= sent or monotonic() > end:
                break
            sleep(0.001)
        moved = [max(arrived, 0), max(lookups, 0)]
        return moved if any(moved) else None
