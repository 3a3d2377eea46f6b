# Says who this interpreter is and where it installs, as JSON on standard output.
import hashlib
import importlib.util
import json
import os
import site
import sys
import sysconfig


def schemes():
    """Candidates, the most wanted first: what a system administrator's install uses."""
    names = sysconfig.get_scheme_names()
    for name in ("posix_local", getattr(sysconfig, "get_default_scheme", lambda: "posix_prefix")()):
        if name in names:
            paths = sysconfig.get_paths(name)
            yield {
                "purelib": paths["purelib"],
                "platlib": paths["platlib"],
                "headers": paths["include"],
                "scripts": paths["scripts"],
                "data": paths["data"],
            }
        # Debian's Python before 3.10 knows its local scheme in distutils alone.
        if name == "posix_local" and name not in names:
            try:
                from distutils.command.install import INSTALL_SCHEMES
                local = INSTALL_SCHEMES["unix_local"]
            except (ImportError, KeyError):
                continue
            values = {
                "base": sys.prefix,
                "platbase": sys.exec_prefix,
                "py_version_short": "%d.%d" % sys.version_info[:2],
                "abiflags": "",
                "dist_name": "",
                "platlibdir": getattr(sys, "platlibdir", "lib"),
            }

            def fill(key):
                text = local[key]
                for variable, value in values.items():
                    text = text.replace("$" + variable, value).replace("{%s}" % variable, value)
                return os.path.normpath(text)

            yield {key: fill(key) for key in ("purelib", "platlib", "headers", "scripts", "data")}


# A folder that does not exist yet is not on sys.path, but it is among the site folders.
searched = set(site.getsitepackages()) | set(sys.path)
scheme = next(
    (paths for paths in schemes() if {paths["purelib"], paths["platlib"]} <= searched), None
)
executable = os.path.realpath(sys.executable)
with open(executable, "rb") as file:
    binary = hashlib.sha256(file.read()).hexdigest()
try:
    libc = os.confstr("CS_GNU_LIBC_VERSION")
except (ValueError, OSError):
    libc = None
json.dump(
    {
        "version": "%d.%d.%d" % sys.version_info[:3],
        "magic": importlib.util.MAGIC_NUMBER.hex(),
        "binary": "sha256:" + binary,
        "libc": libc,
        "scheme": scheme,
        "searched": sorted(searched),
    },
    sys.stdout,
)
