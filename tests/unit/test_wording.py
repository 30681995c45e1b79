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


def test_first_lines_name_things():
    lines = list(house.first_lines())
    vague = [f"{place}: {line}" for place, line in lines if house.VAGUE.search(line)]
    assert len(vague) < 0.025 * len(lines), "\n".join(vague)


def test_vague_first_lines_are_found(tmp_path):
    module = tmp_path / "module.py"
    module.write_text('"""What a frame costs."""\n\ndef f():\n    """Return the cost."""\n')
    found = {
        place[-1]: bool(house.VAGUE.search(line)) for place, line in house.first_lines([module])
    }
    assert found == {"1": True, "3": False}  # by the line
