"""The looks that come with the studio."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dala.media import FramePipeline
from dala.studio.catalogue.presets import PRESETS, presets
from tests.studio.server.conftest import quarters


def test_the_guide_names_them():
    text = (Path(__file__).parents[3] / "docs" / "studio.md").read_text(encoding="utf-8")
    for row in presets():
        assert row["title"].lower() in text


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_renders(session, folder, name):
    (value,) = [row["value"] for row in presets() if row["name"] == name]
    session.do({"do": "open", "path": "quarters.png"})
    session.do({"do": "preset", "value": value})
    links, problems = session._runner.prepare(session.active.contents.cards)
    assert problems == []
    assert len(links) == len(value["chain"])
    chain = [(step["filter"], step.get("params", {})) for step in value["chain"]]
    with FramePipeline(64, 48, device="cpu") as pipeline:
        expected = pipeline.process(quarters(), chain)
    made = np.asarray(session._runner.run(quarters(), links))
    np.testing.assert_array_equal(made, expected)
    assert np.abs(made.astype(int) - quarters().astype(int)).mean() > 1
    assert made.std() > 10  # something is left to see
    assert json.loads(session.do({"do": "copy", "as": "preset"})["text"])["chain"] == value["chain"]
