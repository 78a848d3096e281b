"""Threads of another process: their names, and one of them stopped while the others go on."""

import ctypes
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_ATTACH, _DETACH = 16, 17  # ptrace(2)
_ANY_THREAD = 0x40000000  # __WALL of waitpid(2)
_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


def thread(pid: int, name: str) -> int:
    """The number of the one thread that is called so."""
    found = {int(task.name): (task / "comm").read_text().strip() for task in Path(f"/proc/{pid}/task").iterdir()}
    (number,) = [number for number, called in found.items() if called == name] or [0]
    assert number, f"{name} is not among {sorted(found.values())}"
    return number


@contextmanager
def stopped(pid: int, name: str) -> Iterator[None]:
    """Stops that thread alone, as a debugger does: whatever it was about to do, it does afterwards."""
    number = thread(pid, name)
    if _libc.ptrace(_ATTACH, number, None, None) != 0:
        code = ctypes.get_errno()
        if code in (errno.EPERM, errno.ENOSYS):
            pytest.skip(f"this machine lets no test stop a thread: {os.strerror(code)}")
        raise OSError(code, os.strerror(code), name)
    try:
        os.waitpid(number, _ANY_THREAD)
        yield
    finally:
        _libc.ptrace(_DETACH, number, None, None)
