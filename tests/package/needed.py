"""Needs of a product at run time: a shared library that another distribution lacks fails this test.

Programs and the extension may need the C and C++ run time and OpenSSL 3. The extension may also
need the libraries that travel beside it; with --installed each of them must lie in its folder lib/,
with what they need in turn, and the extension must look there first.

    needed.py FILE...                  programs, or an extension in its build tree
    needed.py --installed PACKAGE      the folder troupe/ of an installation
"""

from __future__ import annotations

import argparse
import pathlib
import re
import subprocess
import sys

SYSTEM = re.compile(
    r"(libc|libm|libdl|libpthread|libstdc\+\+|libgcc_s|ld-linux-[\w-]+|libssl|libcrypto)\.so(\.\d+)*"
)
OPENSSL = {"libssl.so.3", "libcrypto.so.3"}
CARRIED = re.compile(r"lib(capnp|kj)-[\d.]+\.so|libabsl_\w+\.so\.\d+")


def dynamic(path: pathlib.Path) -> tuple[list[str], list[str]]:
    """The NEEDED names of an ELF file and its run-time search paths."""
    text = subprocess.run(
        ["readelf", "-dW", path], check=True, capture_output=True, text=True
    ).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", text), re.findall(
        r"\(R(?:UN)?PATH\).*\[(.*)\]", text
    )


def faults_of(path: pathlib.Path, *, carries: bool) -> list[str]:
    """Return the faults of one file's own entries."""
    needed, search = dynamic(path)
    faults = [
        f"{path} needs {name}, which another distribution lacks: link it statically "
        "(cmake/Dependencies.cmake)"
        for name in needed
        if not SYSTEM.fullmatch(name) and not (carries and CARRIED.fullmatch(name))
    ]
    faults += [
        f"{path} needs {name}, not OpenSSL 3"
        for name in needed
        if name.startswith(("libssl", "libcrypto")) and name not in OPENSSL
    ]
    expected = ["$ORIGIN/lib"] if carries else []
    if search != expected:
        faults.append(f"{path} looks for libraries in {search}; it should be {expected}")
    return faults


def faults_of_installed(package: pathlib.Path) -> list[str]:
    """Return the faults of an installed package: its programs, its extension, and the libraries the
    extension needs."""
    extensions = sorted(package.glob("_native*.so"))
    if len(extensions) != 1:
        return [f"{package} has {len(extensions)} extension modules, not one"]
    faults = faults_of(extensions[0], carries=True)
    for name in ("troupe-head", "troupe-worker"):
        faults += faults_of(package / "bin" / name, carries=False)
    carried = {path.name: path for path in (package / "lib").iterdir()}
    wanted, seen = [extensions[0]], set()
    while wanted:
        for name in dynamic(wanted.pop())[0]:
            if SYSTEM.fullmatch(name) or name in seen:
                continue
            seen.add(name)
            if name in carried:
                wanted.append(carried[name])
            else:
                faults.append(f"{package}/lib has no {name}, which the extension needs")
    faults += [
        f"{package}/lib/{name} is carried, and nothing needs it"
        for name in carried
        if name not in seen
    ]
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--installed", type=pathlib.Path)
    given = parser.parse_args()
    faults = faults_of_installed(given.installed) if given.installed else []
    for path in given.files:
        faults += faults_of(path, carries=path.name.startswith("_native"))
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
