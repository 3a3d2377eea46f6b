# Compiles the sources of distributions. Arguments: the folder that holds the trees (named 0, 1, ...), their number,
# then the library folders of the scheme. What a source becomes depends on nothing but its bytes, its final path and this
# interpreter: not on other sources, since marshal version 2 writes no references, nor on the hash seed, which is fixed.
import importlib.util
import marshal
import os
import sys
import warnings

# Bit 0: the header holds a hash of the source; bit 1: it is checked on import (PEP 552).
CHECKED_HASH = 0b11


def compile_file(path, final):
    with open(path, "rb") as file:
        source = file.read()
    try:
        code = compile(source, final, "exec", dont_inherit=True, optimize=0)
    except (SyntaxError, ValueError, RecursionError, OverflowError, MemoryError):
        # Templates, sources of Python 2 and tests of broken input: they are compiled, or fail, when imported.
        return
    try:
        body = marshal.dumps(code, 2)
    except ValueError:
        return
    folder = os.path.join(os.path.dirname(path), "__pycache__")
    os.makedirs(folder, exist_ok=True)
    target = os.path.join(folder, os.path.basename(importlib.util.cache_from_source(final, optimization="")))
    header = importlib.util.MAGIC_NUMBER + CHECKED_HASH.to_bytes(4, "little")
    with open(target, "wb") as file:
        file.write(header + importlib.util.source_hash(source) + body)


def sources(root, count, libraries):
    for number in range(count):
        for library in sorted(set(libraries)):
            top = os.path.join(root, str(number), library.lstrip("/"))
            for folder, folders, files in os.walk(top):
                folders.sort()
                for name in sorted(files):
                    if name.endswith(".py"):
                        path = os.path.join(folder, name)
                        yield path, library + path[len(top):]


def main():
    root, count, libraries = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    os.umask(0o022)
    warnings.simplefilter("ignore")
    work = list(sources(root, count, libraries))
    # Dealt out file by file to as many processes as there are processors; who compiles a file cannot be seen.
    workers = max(1, min(len(os.sched_getaffinity(0)), len(work) // 100 + 1))
    children = []
    for worker in range(1, workers):
        child = os.fork()
        if not child:
            try:
                for path, final in work[worker::workers]:
                    compile_file(path, final)
            except BaseException:
                import traceback
                traceback.print_exc()
                sys.stderr.flush()
                os._exit(1)
            os._exit(0)
        children.append(child)
    for path, final in work[::workers]:
        compile_file(path, final)
    sys.exit(1 if any([os.waitpid(child, 0)[1] for child in children]) else 0)


main()
