"""Fuzz one target guided by coverage, with Atheris.

    python -m tests.fuzz.with_atheris cube -max_total_time=60
    python -m tests.fuzz.with_atheris all -max_total_time=3600   # make fuzz-atheris
    python -m tests.fuzz.with_atheris cube --kept FOLDER         # goes on from the inputs there

Options with one dash are those of libFuzzer. An input that fails is kept in the target's corpus.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path


def every(options: list[str]) -> int:
    """Fuzz all targets, one after another; print how each ended, and return how many failed."""
    from tests.fuzz import targets

    failed = 0
    for name in targets.available():
        command = [sys.executable, "-m", "tests.fuzz.with_atheris", name, *options]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        failed += done.returncode != 0
        lines = done.stderr.strip().splitlines()
        told = lines[-1] if done.returncode == 0 and lines else done.stderr[-3000:]
        sys.stdout.write(f"{name}: {told}\n")
        sys.stdout.flush()
    return failed


def main() -> None:
    """Fuzz the target that the first argument names."""
    try:
        import atheris
    except ImportError:
        sys.exit("Atheris is not installed. Run: pip install atheris")
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[1] == "all":
        sys.exit(every(sys.argv[2:]))
    with atheris.instrument_imports(include=["dala"]):
        from tests.fuzz import targets
        from tests.fuzz.target import CORPUS

        target = targets.make(sys.argv[1])
        target.check(target.seeds()[0])  # whatever loads on first use is instrumented too

    options = sys.argv[2:]
    folder = Path(tempfile.mkdtemp(prefix=f"dala-fuzz-{target.name}-"))
    if "--kept" in options:
        at = options.index("--kept")
        _, kept = options[at : at + 2]
        del options[at : at + 2]
        folder = Path(kept)
        folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(target.corpus):
        (folder / f"{number}").write_bytes(data)
    words = Path(tempfile.mkdtemp()) / "words"
    listed = ("".join(f"\\x{byte:02x}" for byte in word) for word in target.words)
    words.write_text("".join(f'"{word}"\n' for word in listed))
    failed = CORPUS / target.name
    failed.mkdir(parents=True, exist_ok=True)
    options += [f"-artifact_prefix={failed}/", *([f"-dict={words}"] if target.words else [])]

    def one_input(data: bytes) -> None:
        target.check(data, twice=False)

    atheris.Setup([sys.argv[0], *options, str(folder)], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
