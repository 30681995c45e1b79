"""Hints about installing name the distribution, in the one form that every shell takes."""

import pathlib
import re
import tomllib

from dala.extras import CORE, DISTRIBUTION, EXTRAS, pip_install

ROOT = pathlib.Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FILES = [
    path
    for pattern in ("*.md", "docs/**/*.md", "benchmarks/*.md", "src/**/*.py", "src/**/*.pyi",
                    "examples/**/*.py", "scripts/*")
    for path in sorted(ROOT.glob(pattern))
]  # fmt: skip


def names(requirements):
    """The names of packages; other extras of ours are left out."""
    return tuple(re.split(r"[<>=; \[]", line)[0] for line in requirements if "dala" not in line)


def test_what_doctor_knows_is_what_pyproject_declares():
    assert PROJECT["name"] == DISTRIBUTION == "dala-gpu"
    extras = PROJECT["optional-dependencies"]
    declared = {name: set(names(lines)) for name, lines in extras.items() if name != "docs"}
    declared.pop("dev")
    every = [line for line in extras["dev"] if line.startswith(DISTRIBUTION)]
    assert every == [f"{DISTRIBUTION}[{','.join([*EXTRAS, 'docs'])}]"]
    assert declared == {name: set(packages) for name, (_, packages) in EXTRAS.items()}
    assert set(names(PROJECT["dependencies"])) == set(CORE)


def test_the_page_on_licenses_names_every_package():
    page = (ROOT / "docs" / "licenses.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| ([\w-]+) \| \S", page, re.MULTILINE)
    declared = {"core": CORE} | {extra: packages for extra, (_, packages) in EXTRAS.items()}
    assert sorted(rows[1:]) == sorted((e, p) for e, packages in declared.items() for p in packages)


def test_the_form():
    assert pip_install() == "pip install dala-gpu"
    assert pip_install("media", "view") == 'pip install "dala-gpu[media,view]"'


def test_every_hint_has_the_form():
    form = re.compile(r' (--\S+ )*("dala-gpu\[[a-z,{}]+\]"|dala-gpu)[.,;:)]*(\\n)?[\'"]*')
    wrong = []
    for path in FILES:
        for line in path.read_text(encoding="utf-8").splitlines():
            hints = re.findall(r"pip install((?: -\S+)* [\"']?dala[^ `]*)", line)
            module = re.search(r"(?<![\w.])dala\[(?:media|text|color|ml|view|dev)", line)
            if module or not all(form.fullmatch(hint) for hint in hints):
                wrong.append(f"{path.relative_to(ROOT)}: {line}")
    assert wrong == []


def test_code_makes_hints_by_the_function():
    """Literals are left to docstrings, which cannot call it."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        if path.name != "extras.py":
            for line in path.read_text(encoding="utf-8").splitlines():
                if f'pip install "{DISTRIBUTION}' in line:
                    assert "``" in line, f"{path}: {line}"
