"""The built page in the package is what `npm ci && npm run build` in `web/studio` makes."""

import hashlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "web" / "studio"
STATIC = ROOT / "src" / "dala" / "studio" / "static"
#: Files outside `src` that decide what is built, as `build.mjs` lists them.
TOP = ("build.mjs", "package.json", "package-lock.json", "tsconfig.json")


def digest(folder: Path) -> str:
    """Return the hash of the sources, as `build.mjs` computes it."""
    paths = [*TOP, *(p.relative_to(folder).as_posix() for p in folder.glob("src/**/*"))]
    made = hashlib.sha256()
    for path in sorted(p for p in paths if (folder / p).is_file()):
        data = (folder / path).read_bytes()
        made.update(f"{path}\0{len(data)}\0".encode() + data)
    return made.hexdigest()


@pytest.mark.skipif(not SOURCES.is_dir(), reason="an installed package has no sources of the page")
def test_built_files_are_of_these_sources() -> None:
    built = (STATIC / "sources.sha256").read_text().strip()
    assert built == digest(SOURCES), "run `npm ci && npm run build` in web/studio, and commit"


def test_page_names_only_files_of_its_own() -> None:
    page = (STATIC / "index.html").read_text()
    assert "<style" not in page
    assert " style=" not in page
    for name in re.findall(r'(?:href|src)="([^"]+)"', page):
        assert name.startswith("static/")
        assert (STATIC / name.removeprefix("static/")).is_file()
    sheet = (STATIC / "studio.css").read_text()
    for name in re.findall(r"url\(\"?([^)\"]+)", sheet):
        assert (STATIC / name).is_file(), name


def test_scripts_load_nothing_from_elsewhere() -> None:
    scripts = sorted(STATIC.glob("*.js"))
    assert len(scripts) >= 2, "the editor is a file of its own, loaded when it is needed"
    for script in scripts:
        text = script.read_text()
        assert "new Function(" not in text
        assert not re.search(r"[^\w.]eval\(", text)
        for name in re.findall(r"\b(?:from|import)\s*\(?\"([^\"\s]+\.js)\"", text):
            assert name.startswith("./"), name
            assert (STATIC / name).is_file(), name


def test_licenses_of_packages_are_shipped() -> None:
    text = (STATIC / "licenses.txt").read_text()
    for name in ("preact", "@codemirror/view", "@lezer/common", "@fontsource-variable/inter"):
        assert f"\n{name} " in text
    assert "SIL OPEN FONT LICENSE" in text.upper()
