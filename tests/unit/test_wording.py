"""Wording: plain technical English, the same words for the same things."""

from tests.support import house


def test_old_words_do_not_come_back():
    assert list(house.dialect()) == []


def test_the_list_of_words_finds_them(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("17 came.\nStages melt.\nIt is told.\nA colour.\nGot 17. Stages are fused.\n")
    assert [row.split(": ")[1] for row in house.dialect([page])] == [
        "'came' (write",
        "'melt' (write",
        "'is told' (write",
        "'colour' (write",
    ]
