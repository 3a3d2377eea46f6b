# Calls one hook of a build backend (PEP 517, 660), in the source's folder, as the specification asks: arguments are the action,
# the source, an output folder and a JSON object {backend, backend-path}.
import importlib
import json
import os
import sys


def write(folder, name, value):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        json.dump(value, file)


def main():
    action, source, out, backend = sys.argv[1:5]
    backend = json.loads(backend)
    os.umask(0o022)
    os.chdir(source)
    # The folder of this script is no place to import from.
    sys.path[:] = [os.path.join(source, part) for part in backend["backend-path"]] + sys.path[1:]
    sys.argv[:] = ["setup.py"]
    module, _, attributes = backend["backend"].partition(":")
    hooks = importlib.import_module(module)
    for attribute in filter(None, attributes.split(".")):
        hooks = getattr(hooks, attribute)

    def call(name, *arguments):
        hook = getattr(hooks, name, None)
        return hook(*arguments) if hook else None

    if action == "requires":
        write(out, "requires.json", {
            "wheel": call("get_requires_for_build_wheel") or [],
            "editable": call("get_requires_for_build_editable") or [],
        })
    elif action == "metadata":
        folder = call("prepare_metadata_for_build_wheel", out)
        if folder is None:
            write(out, "built.json", call("build_wheel", out))
        else:
            write(out, "metadata.json", folder)
    elif action == "wheel":
        write(out, "built.json", hooks.build_wheel(out))
    else:
        sys.exit("unknown action " + action)


main()
