"""Files around the code that name its versions, commands and checks agree with it."""

from __future__ import annotations

import json
import pathlib
import re
import tomllib

import pytest
import yaml

import dala
from benchmarks.video import quote

ROOT = pathlib.Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def load(name):
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def lint_commands():
    """The commands of ``make lint``, without the folder of their environment."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", text, re.M)[1]
    return [line.strip().removeprefix("$(VENV)/bin/") for line in recipe.splitlines()]


def test_pre_commit_has_the_checks_of_make_lint():
    (repository,) = load(".pre-commit-config.yaml")["repos"]
    hooks = [
        " ".join([hook["entry"].removeprefix(".venv/bin/"), *hook.get("args", [])])
        for hook in repository["hooks"]
    ]
    assert hooks == lint_commands()


def test_workflows_test_every_supported_python_on_every_system():
    matrix = load(".github/workflows/test.yml")["jobs"]["test"]["strategy"]["matrix"]
    named = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if "Python :: 3." in c]
    assert matrix["python"] == named
    assert matrix["os"] == ["ubuntu-latest", "macos-latest", "windows-latest"]


@pytest.mark.parametrize("path", sorted((ROOT / ".github" / "workflows").glob("*.yml")))
def test_workflows_may_only_read_unless_they_say_so(path):
    flow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert flow["permissions"] == {"contents": "read"}
    for job in flow["jobs"].values():
        for step in job["steps"]:
            # Text of strangers, such as the name of a branch, must not become part of a command.
            assert "${{" not in step.get("run", ""), step


def test_make_targets_of_workflows_exist():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for target in re.findall(r"run: make ([\w-]+)", path.read_text(encoding="utf-8")):
            assert target in targets


def test_the_citation_is_of_this_version():
    citation = load("CITATION.cff")
    assert citation["version"] == dala.__version__
    assert citation["license"] == PROJECT["license"]
    assert citation["repository-code"] == PROJECT["urls"]["Repository"]


def test_templates_have_what_forms_need():
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        if path.name == "config.yml":
            assert form["contact_links"][0]["url"].startswith(PROJECT["urls"]["Repository"])
            continue
        assert {"name", "description", "body"} <= set(form)
        fields = [part["id"] for part in form["body"] if part["type"] != "markdown"]
        assert len(fields) == len(set(fields)) > 0


def test_the_dev_container_uses_files_that_are_there():
    folder = ROOT / ".devcontainer"
    config = json.loads((folder / "devcontainer.json").read_text(encoding="utf-8"))
    recipe = (folder / config["build"]["dockerfile"]).read_text(encoding="utf-8")
    for source in re.findall(r"^COPY (\S+)", recipe, re.M):
        assert (ROOT / source).is_file()
    assert f"{config['remoteUser']}" in recipe


def test_the_navigation_names_every_page_once():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    named = re.findall(r"([\w/-]+\.md)$", text, re.M)
    assert sorted(named) == sorted(set(named))
    missing = [n for n in named if not (ROOT / "docs" / n).is_file()]
    assert all(name.startswith("project/") for name in missing), missing


def test_files_that_pages_for_contributors_name_are_there():
    """Paths in code, as from a room of the house: ``media/frame.py``, ``rows/plan.py``."""
    here = [*(ROOT / "src").rglob("*.*"), *(ROOT / "tests").rglob("*.*"), *ROOT.glob("*.*")]
    here += [
        path
        for name in ("scripts", "website", "docs", "examples")
        for path in (ROOT / name).rglob("*.*")
    ]
    known = "\n".join(f"/{path.relative_to(ROOT).as_posix()}" for path in here) + "\n"
    missing = []
    for page in [*(ROOT / "docs" / "design").glob("*.md"), ROOT / "CONTRIBUTING.md"]:
        for name in re.findall(r"`([\w/.]+\.(?:py|pyi|md|toml))`", page.read_text("utf-8")):
            if f"/{name}\n" not in known and not {"NAME", "DOMAIN"} & set(re.split(r"\W", name)):
                missing.append(f"{page.name}: {name}")
    assert missing == []


def test_readme_quotes_the_best_and_the_worst_video():
    """``python -m benchmarks.video.quote`` writes both pages from the stored results."""
    found = quote.stored()
    assert len(found["rows"]) == 20
    assert quote.table(found) in quote.PAGE.read_text(encoding="utf-8")
    assert quote.line(found) in quote.README.read_text(encoding="utf-8")
