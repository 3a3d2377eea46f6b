"""Compiles Python modules so that the bytes depend on the source alone.

Checked-hash pyc (PEP 552), no optimisation, marshal version 2, which writes no references: neither the order
of compilation nor what else was interned shows. Needs PYTHONHASHSEED=0, since sets are written in
hash order. A pyc without its source, or of another optimisation, is removed. Arguments: folders.
"""

import importlib.util
import marshal
import os
import sys
import warnings

SUFFIX = ".%s.pyc" % sys.implementation.cache_tag


def sources(folders):
    for folder in folders:
        for top, names, files in os.walk(folder):
            names.sort()
            for name in sorted(files):
                path = os.path.join(top, name)
                if name.endswith(".pyc"):
                    yield path
                elif name.endswith(".py") and wanted(top):
                    yield path


def wanted(top):
    # Modules of the interpreter and of Debian's own packages, not scripts that happen to end in .py.
    return "/python3" in top or top.startswith("/usr/share/python3")


def compile_one(path):
    if path.endswith(".pyc"):
        try:
            source = importlib.util.source_from_cache(path)
        except (ValueError, NotImplementedError):
            source = None
        if source is None or not path.endswith(SUFFIX) or not os.path.isfile(source):
            os.remove(path)
        return
    if not os.path.isfile(path):
        # A link to nowhere; other links are compiled under their own name, as an import does.
        return
    with open(path, "rb") as file:
        text = file.read()
    target = importlib.util.cache_from_source(path, optimization="")
    try:
        code = compile(text, path, "exec", dont_inherit=True, optimize=0)
    except (SyntaxError, ValueError, UnicodeError):
        # Test data and templates; importing them fails with or without a pyc.
        if os.path.exists(target):
            os.remove(target)
        return
    data = (
        importlib.util.MAGIC_NUMBER
        + (0b11).to_bytes(4, "little")
        + importlib.util.source_hash(text)
        + marshal.dumps(code, 2)
    )
    try:
        with open(target, "rb") as file:
            if file.read() == data:
                return
        os.remove(target)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "xb") as file:
        file.write(data)
    os.chmod(target, 0o644)


def main():
    if sys.flags.hash_randomization:
        sys.exit("PYTHONHASHSEED must be 0")
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(10000)
    work = list(sources(sys.argv[1:]))
    workers = min(8, len(os.sched_getaffinity(0)))
    children = []
    for number in range(workers):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                for path in work[number::workers]:
                    compile_one(path)
                status = 0
            finally:
                if status:
                    import traceback

                    traceback.print_exc()
                    sys.stderr.flush()
                os._exit(status)
        children.append(child)
    failed = [child for child in children if os.waitpid(child, 0)[1] != 0]
    sys.exit(1 if failed else 0)


main()
