"""``dala selftest``: the report, JSON, and the exit code of a difference."""

from __future__ import annotations

import json

import numpy as np

from dala.answers.cases import Row
from dala.cli import main


def test_report(capsys):
    assert main(["selftest", "--device", "cpu", "--only", "invert", "flip"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Dala ")
    assert "\ncpu: " in out
    assert " rows equal, 0 differ; " in out
    assert out.endswith("All bytes are equal.\n")


def test_json(capsys):
    assert main(["selftest", "--device", "reference", "--device", "cpu", "--only", "flip",
                 "--share", "few", "--json"]) == 0  # fmt: skip
    page = json.loads(capsys.readouterr().out)
    assert page["ok"]
    assert [d["device"]["id"] for d in page["devices"]] == ["reference", "cpu"]
    assert page["devices"][1]["level"]
    assert {"python", "system", "machine"} <= page["system"].keys()


def test_a_difference(capsys, monkeypatch):
    """It is shown with its first pixel, and ends with 1."""
    right = Row.run

    def wrong(self, device):
        made = np.array(right(self, device))
        if device != "reference":
            made.reshape(-1)[-1] ^= 1
        return made

    monkeypatch.setattr(Row, "run", wrong)
    assert main(["selftest", "--device", "cpu", "--only", "flip"]) == 1
    out = capsys.readouterr().out
    assert "flip/default/gray/random: at x=36, y=22: " in out
    assert "1 of 851 values differ, by up to 1" in out
    assert out.endswith("Some rows DIFFER. Please report this.\n")


def test_errors(capsys):
    assert main(["selftest", "--only", "flipp"]) == 2
    assert "selftest: only must be names of filters, got 'flipp'. Did you mean 'flip'?" in (
        capsys.readouterr().err
    )
