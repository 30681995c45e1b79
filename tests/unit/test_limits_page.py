"""docs/limits.md agrees with the constants in the code, and names those that bound input."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
UNITS = {"": 1, "s": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "%": 0.01}
#: Constants of these files are about speed or appearance, and refuse nothing.
INTERNAL = (
    "cli/", "gpu/compute/engines/", "gpu/raster/", "gpu/compute/arrays/", "gpu/compute/runnable.py",
    "gpu/compute/lang/inline.py", "gpu/compute/pipeline/", "media/filters/", "media/text/bidi.py",
    "media/video/", "ml/", "gpu/presenters/terminal.py", "gpu/presenters/notebook.py",
)  # fmt: skip
#: Constants that are checked by another error of the same call, or listed under another name.
ELSEWHERE = {
    "gpu.compute.kernels.blur.MAX_SIGMA",  # follows from the radius
    "gpu.compute.kernels.reshape.MAX_RANK",
    "media.scene.file.record.MAX_LISTED",  # a choice between two forms of saving
}


def rows():
    for table in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE):
        lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
        if lines[0][-1] == "constant":
            assert lines[0][1] == "default"
            for line in lines[2:]:
                assert len(line) == len(lines[0]), line
                if line[-1]:
                    yield line[0], line[1], line[-1].strip("`")


ROWS = list(rows())


def constant(name):
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(["dala", *parts[:n]]))
        except ImportError:
            continue
        for part in parts[n:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"there is no constant {name}")


@pytest.mark.parametrize(("what", "default", "name"), ROWS, ids=[f"{n}-{d}" for _, d, n in ROWS])
def test_default(what, default, name):
    found = re.fullmatch(r"([0-9][0-9,]*) ?(\D*)", default)
    assert found, f"{what}: a number and a unit, not {default!r}"
    assert int(found[1].replace(",", "")) * UNITS[found[2]] == constant(name)


def test_page_lists_every_constant():
    listed = {name for _, _, name in ROWS} | ELSEWHERE
    missing = []
    for path in sorted((ROOT / "src" / "dala").rglob("*.py")):
        place = path.relative_to(ROOT / "src" / "dala").as_posix()
        if place.startswith(INTERNAL):
            continue
        module = place.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in re.findall(r"^(MAX_\w+)\b.*=", path.read_text(encoding="utf-8"), re.MULTILINE):
            if f"{module}.{name}" not in listed:
                missing.append(f"{module}.{name}")
    assert missing == [], "add them to docs/limits.md"


def test_page_has_the_limits_of_every_room():
    assert len(ROWS) > 50
    assert "docs/limits.md" in (ROOT / "README.md").read_text(encoding="utf-8")
