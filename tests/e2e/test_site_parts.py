"""Parts of the generator of the site."""

from __future__ import annotations

import doctest
import inspect

import pytest

from website import crawl, docstrings, links, llms, pages, reference, versions
from website.catalogue import (
    examples,
    transitions,
)


def test_a_crawl_finds_what_is_wrong(tmp_path):
    (tmp_path / "index.html").write_text(
        '<title>a</title><a href="b.html#c">x</a><a href="d.html">y</a>'
        '<img src="e.png"><script src="https://f.example/g.js"></script><p id="h"><p id="h">'
        '<a href="../index.html">z</a><p>One:\n2. two</p><code>a \\| b</code>',
        encoding="utf-8",
    )
    (tmp_path / "b.html").write_text("<title></title>", encoding="utf-8")
    (tmp_path / "s.css").write_text("a { b: url(https://i.example/j) }", encoding="utf-8")
    (tmp_path / "llms.txt").write_text("- [k](l.md)", encoding="utf-8")
    assert set(crawl.problems(tmp_path)) == {
        "b.html: no title",
        "index.html: no anchor b.html#c",
        "index.html: a link leads nowhere: d.html",
        "index.html: a link leads nowhere: ../index.html",
        "index.html: picture without alternative text: e.png",
        "index.html: nothing at e.png",
        "index.html: loads https://f.example/g.js",
        "index.html: id 'h' is there 2 times",
        "index.html: an item of a list is text: 2. two",
        "index.html: a backslash before a pipe is shown: <code>a \\| b</code>",
        "s.css: loads https://i.example/j",
        "b.md: no Markdown beside the page",
        "b.md: not in llms.txt",
        "index.md: no Markdown beside the page",
        "index.md: not in llms.txt",
        "llms.txt: nothing at l.md",
    }


@pytest.mark.parametrize(
    "module", [docstrings, examples, links, llms, pages, reference, transitions, versions]
)
def test_examples_of_the_generator(module):
    assert doctest.testmod(module).failed == 0


def test_links_out_of_docs():
    assert (
        links.rewrite("[`a` b](../x.py) `[c](../d)` [e](f.md)", "g.md", "https://r", {})
        == "[`a` b](https://r/blob/HEAD/x.py) `[c](../d)` [e](f.md)"
    )
    assert links.move("[a](docs/b.md#c)", "X.md", "project/x.md") == "[a](../b.md#c)"


def test_docstrings_become_markdown():
    found = docstrings.parse(
        """Add two.

        More of ``it``::

            add(1, 2)

        Args:
            a, b (pixels): the numbers, which
                are added.

        Raises:
            ParameterError: one is not.

        >>> add(1, 2)
        3
        """
    )
    assert found.summary == "Add two."
    assert found.items["Args"] == {"a, b": "pixels; the numbers, which are added."}
    assert found.items["Raises"] == {"ParameterError": "one is not."}
    assert found.body.splitlines() == [
        "More of `it`:", "", "```python", "add(1, 2)", "```", "", "```pycon", ">>> add(1, 2)", "3",
        "```",
    ]  # fmt: skip


def test_long_signatures_have_a_line_for_each_parameter():
    def call(
        first: int, *, second: str = "x", third: dict[str, tuple[float, float]] | None = None
    ) -> None: ...

    assert reference.shown_signature("call", inspect.signature(call)).splitlines() == [
        "call(",
        "    first: int,",
        "    *,",
        "    second: str = 'x',",
        "    third: dict[str, tuple[float, float]] | None = None,",
        ") -> None",
    ]
