"""The pages of examples/web are what their script writes today."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "web"
#: Encoders of other versions write other bytes.
PICTURES = (".jpg", ".png")


def test_pages_are_current(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    runpy.run_path(str(EXAMPLES / "make.py"))["main"](tmp_path)
    made = {p.relative_to(tmp_path): p for p in tmp_path.rglob("*") if p.is_file()}
    kept = {p.relative_to(EXAMPLES): p for p in EXAMPLES.rglob("*") if p.is_file()}
    kept.pop(Path("make.py"))
    assert set(made) == {path for path in kept if "__pycache__" not in path.parts}
    for name, path in made.items():
        if path.suffix not in PICTURES:
            assert path.read_bytes() == kept[name].read_bytes(), f"run examples/web/make.py: {name}"
    assert sum(p.stat().st_size for p in kept.values()) < 500_000
