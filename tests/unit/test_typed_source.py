"""``@kernel`` on functions that are in no file: ``-c``, ``python -``, ``exec`` and sessions."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time

import numpy as np
import pytest

from dala.errors import KernelSyntaxError

TEXT = '''import numpy as np
from dala.gpu.compute import kernel
@kernel
def doubled(x, *, a=2.0):
    """Times a, plus 1."""
    return x * a + 1

print(doubled(np.array([1.0], np.float32)))
'''


def run(arguments: list[str], **options: object) -> str:
    environment = {**os.environ, "DALA_DEVICE": "reference"}
    ran = subprocess.run(
        [sys.executable, *arguments], text=True, capture_output=True, env=environment, timeout=60,
        **options,
    )  # fmt: skip
    return ran.stdout + ran.stderr


def test_text_of_c():
    assert run(["-c", TEXT]) == "[3.]\n"


def test_standard_input_from_a_file(tmp_path):
    path = tmp_path / "text.py"
    path.write_text(TEXT)
    with path.open() as file:
        assert run(["-"], stdin=file) == "[3.]\n"


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="Python keeps the text")
def test_a_pipe_gets_a_hint():
    out = run(["-"], input=TEXT)
    assert "the source of this function is not available here (Python 3.13 keeps it)" in out
    assert "doubled = kernel('def doubled(x): return ...')" in out


def test_exec():
    text = TEXT.replace("print(", "answer = (")
    names: dict[str, object] = {}
    exec(text, names)
    assert np.asarray(names["answer"]).tolist() == [3.0]


def test_another_function_of_that_name_is_not_taken():
    given = compile(TEXT, "<given>", "exec")
    other = TEXT.replace("x * a + 1", "x * a + 2")
    with pytest.raises(KernelSyntaxError, match="not available here"):
        run_code(given, other)


def run_code(given: object, other: str) -> None:
    """Run code beside the text of another function, where the search finds only that."""
    assert other
    exec(given, {})  # type: ignore[call-overload]


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_an_interactive_session():
    pty = pytest.importorskip("pty")
    pytest.importorskip("readline")
    child, terminal = pty.fork()
    if child == 0:
        os.environ |= {"DALA_DEVICE": "reference", "TERM": "dumb", "PYTHON_BASIC_REPL": "1"}
        os.execv(sys.executable, [sys.executable, "-q"])
    seen = b""
    end = time.monotonic() + 60

    def until(prompt: bytes) -> None:
        nonlocal seen
        start = len(seen)
        while prompt not in seen[start:] and time.monotonic() < end:
            if select.select([terminal], [], [], 0.1)[0]:
                seen += os.read(terminal, 65536)

    until(b">>> ")
    for line in TEXT.splitlines():
        os.write(terminal, line.encode() + b"\n")
        until(b"... " if line.startswith(("@", "def", " ")) else b">>> ")
    os.write(terminal, b"exit()\n")
    os.waitpid(child, 0)
    os.close(terminal)
    assert b"[3.]" in seen
