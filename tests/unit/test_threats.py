"""Every promise of SECURITY.md names the tests that show it, and there are such tests."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "SECURITY.md").read_text("utf-8")
#: A test, as the page names it.
LINK = re.compile(r"\[test\]\((tests/[\w/]+\.py)#(test_\w+)\)")
#: Parts that promise nothing of the library: what others are trusted with, what is left open, and
#: how to write to us.
WITHOUT = ("", "What is trusted", "What is not promised", "Report a vulnerability")
#: The end of a sentence, before the next one.
END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*])")


def parts(text: str) -> dict[str, str]:
    """Return the text of each part by its heading."""
    found = re.split(r"^## (.+)\n", re.sub(r"^# .+\n", "", text), flags=re.MULTILINE)
    return {"": found[0], **dict(zip(found[1::2], found[2::2], strict=True))}


def claims(text: str) -> list[str]:
    """Return what promises something: the rows of tables, the items of lists, the sentences.

    >>> claims("One. Two\\nthree.\\n\\n- four;\\n  five\\n- six\\n")
    ['One.', 'Two three.', 'four; five', 'six']
    """
    found = []
    for block in re.split(r"\n\s*\n|\n(?=- |\| )", text.strip()):
        line = " ".join(block.split())
        if line.startswith("|"):
            if not set(line) <= set("|- ") and "shown by" not in line:
                found.append(line)
        elif line:
            found += END.split(line.removeprefix("- "))
    return found


@cache
def functions_of(path: str) -> frozenset[str]:
    """Return the names of the tests in a file."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def without_tests(text: str) -> list[str]:
    """Return the claims that name no test."""
    found = [claim for name, part in parts(text).items() if name not in WITHOUT
             for claim in claims(part)]  # fmt: skip
    return [claim for claim in found if not LINK.search(claim)]


def missing_tests(text: str) -> list[str]:
    """Return the tests that are named, and are not there."""
    return [
        f"{path}::{name}"
        for path, name in LINK.findall(text)
        if not (ROOT / path).is_file() or name not in functions_of(path)
    ]


def test_every_promise_names_its_test() -> None:
    assert without_tests(TEXT) == []


def test_every_named_test_is_there() -> None:
    assert missing_tests(TEXT) == []
    assert len(set(LINK.findall(TEXT))) > 60


def test_no_link_to_a_test_is_misspelled() -> None:
    assert TEXT.count("[test](") == len(LINK.findall(TEXT))


def test_the_table_has_all_columns() -> None:
    rows = [line for line in parts(TEXT)["Threats"].splitlines() if line.startswith("| ")]
    assert len(rows) > 15
    for row in rows[1:]:
        cells = [cell.strip() for cell in row.strip("|").split(" | ")]
        assert len(cells) == 5, row
        assert all(cells), row


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda text: text.replace("## Secrets", "Nothing happens.\n\n## Secrets"), "Nothing"),
        (lambda text: text.replace("\n\n## Names", "\n| a | b | c | d | e |\n\n## Names"), "| a"),
        (lambda text: text.replace("- `Frame.open", "- New.\n- `Frame.open"), "New."),
        (lambda text: text.replace("Line ends and", "It is so. Line ends and"), "It is so."),
    ],
)
def test_a_promise_without_a_test_is_noticed(change, found) -> None:
    (claim,) = without_tests(change(TEXT))
    assert claim.startswith(found)


def test_a_test_that_is_gone_is_noticed() -> None:
    path, name = LINK.findall(TEXT)[0]
    assert missing_tests(TEXT.replace(f"{path}#{name}", f"{path}#{name}_gone")) != []
    assert missing_tests(TEXT.replace(path, "tests/unit/test_gone.py")) != []
