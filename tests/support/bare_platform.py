"""A platform without what only POSIX has: this process, after :func:`install`.

What Windows lacks is removed from ``os`` and ``signal``, modules of Unix cannot be imported, and
there are no ``/proc`` and ``/sys``. ``sys.platform`` stays: other packages go by it. Install it
after them, and before dala, which must not notice.
"""

from __future__ import annotations

import builtins
import importlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from typing import Any

#: Packages that are loaded before, as they are.
OTHERS = (
    "numpy", "av", "PIL.Image", "llvmlite.binding", "wgpu", "freetype", "asyncio", "subprocess",
    "multiprocessing.pool", "concurrent.futures.process", "onnxruntime", "tempfile", "shutil",
)  # fmt: skip
_OS = (
    "fork", "forkpty", "register_at_fork", "geteuid", "getuid", "getegid", "getgid", "sysconf",
    "sched_getaffinity", "process_cpu_count", "mkfifo", "killpg", "getpgid", "setsid", "pread",
    "pwrite", "posix_fadvise", "memfd_create", "eventfd", "getloadavg", "statvfs", "fchmod",
    "fchown", "chown", "pipe2", "nice", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY",
    "O_DIRECTORY",
)  # fmt: skip
_SIGNALS = (
    "SIGKILL", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGPIPE", "SIGCHLD",
    "pthread_sigmask", "pthread_kill", "setitimer", "alarm",
)  # fmt: skip
_MODULES = ("fcntl", "resource", "termios", "tty", "pty", "pwd", "grp")
_PLACES = ("/proc", "/sys")


class _Without:
    """Finds no module of Unix."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: Any = None
    ) -> ModuleSpec | None:
        if name in _MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def install() -> None:
    """Make this process such a platform."""
    for name in OTHERS:
        importlib.import_module(name)
    for module, names in ((os, _OS), (signal, _SIGNALS)):
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    for name in _MODULES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, _Without())  # type: ignore[arg-type]
    real_open, real_list, real_scan = builtins.open, os.listdir, os.scandir
    real_exists, real_stat = os.path.exists, os.stat

    def refuse(path: Any) -> None:
        if isinstance(path, str | os.PathLike) and os.fspath(path).startswith(_PLACES):
            raise FileNotFoundError(2, "No such file or directory", os.fspath(path))

    def checked(call: Any) -> Any:
        def wrapped(path: Any = ".", *args: Any, **kwargs: Any) -> Any:
            refuse(path)
            return call(path, *args, **kwargs)

        return wrapped

    builtins.open = io.open = checked(real_open)
    os.listdir, os.scandir, os.stat = checked(real_list), checked(real_scan), checked(real_stat)
    os.path.exists = lambda path: not str(path).startswith(_PLACES) and real_exists(path)
