"""Mounts inputs of a job read-only: in the thread that becomes the command, and as a program that
becomes the command, for users other than root.

    python -I -S mounts.py LIST COMMAND...     mount what LIST names, and execute COMMAND
    python -I -S mounts.py --try SOURCE...     end with code 0 if this process may mount these

LIST is a file with pairs of texts, each text ended by a NUL: a source, and where it is mounted,
from LIST's own folder. The mounts are in a mount namespace of this process and its children: no
other process sees them, and they end with the last of these processes. A process of root needs a
mount namespace alone. Another user's process also needs a user namespace, in which its user and
group keep their numbers.

As a program it imports nothing of troupe: it runs before each command that has inputs.
"""

import ctypes
import os
import signal
import sys

_NEW_MOUNTS, _NEW_USER = 0x00020000, 0x10000000
_BIND, _RECURSIVE, _SLAVE = 0x1000, 0x4000, 0x80000
_SET_ATTRIBUTES = 442  # mount_setattr(2), Linux 5.12: one number on all architectures
_AT_FDCWD, _AT_RECURSIVE, _READ_ONLY = -100, 0x8000, 1
_libc = ctypes.CDLL(None, use_errno=True)


class _Attributes(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "user_namespace")
    ]


def enter_namespace() -> None:
    """Enter a mount namespace of this process's own.

    What is mounted outside later appears in it, and nothing of it appears outside.

    Raises:
        OSError: where this process may not.
    """
    user, group = os.geteuid(), os.getegid()
    _check(_libc.unshare(_NEW_MOUNTS if user == 0 else _NEW_MOUNTS | _NEW_USER), "unshare")
    if user != 0:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    _check(_libc.mount(None, b"/", None, ctypes.c_ulong(_RECURSIVE | _SLAVE), None), "/")


def mount_read_only(source: str, target: str) -> None:
    """Mount a folder or a file, with what is mounted below it, read-only at `target`, which is
    there.

    Raises:
        OSError: where this process may not, or the kernel is older than Linux 5.12.
    """
    there = os.fsencode(target)
    _check(
        _libc.mount(os.fsencode(source), there, None, ctypes.c_ulong(_BIND | _RECURSIVE), None),
        target,
    )
    wanted = _Attributes(set=_READ_ONLY)
    _check(
        _libc.syscall(
            ctypes.c_long(_SET_ATTRIBUTES),
            ctypes.c_int(_AT_FDCWD),
            there,
            ctypes.c_uint(_AT_RECURSIVE),
            ctypes.byref(wanted),
            ctypes.c_size_t(ctypes.sizeof(wanted)),
        ),
        target,
    )


def mount_all(listed: str) -> None:
    """Mount what the file `listed` names, in a mount namespace of this thread's own.

    Raises:
        OSError: where this process may not, or a source is gone.
    """
    with open(listed, "rb") as file:
        texts = [os.fsdecode(each) for each in file.read().split(b"\0")[:-1]]
    enter_namespace()
    for source, target in zip(texts[::2], texts[1::2], strict=True):
        mount_read_only(source, os.path.join(os.path.dirname(listed), target))


def describe(error: OSError) -> str:
    """Return what is said of inputs that cannot be mounted."""
    return (
        f"the job's inputs cannot be mounted read-only on {os.uname().nodename}: {error.filename}: "
        f"{error.strerror}\n"
        "  mode: download makes a copy of an input instead"
    )


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _main(words: list[str]) -> int:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        if words[0] == "--try":
            enter_namespace()
            for source in words[1:]:
                mount_read_only(source, source)
            return 0
        mount_all(words[0])
    except OSError as error:
        print(f"troupe: {describe(error)}", file=sys.stderr)
        return 1
    for number in (
        signal.SIGPIPE,
        signal.SIGXFSZ,
    ):  # Python ignores the signal, and a command would inherit that
        signal.signal(number, signal.SIG_DFL)
    os.execvp(words[1], words[1:])


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
