"""Parsing of filters on the command line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dala.cli import _chain as chain
from dala.errors import ParameterError
from dala.media import gpu

FLAGS = {"--json": False, "--device": True}
numbers = st.integers(-1000, 1000) | st.floats(allow_nan=False, allow_infinity=False)


def test_every_filter_is_known():
    assert list(chain.filters()) == gpu.filters()
    for name in gpu.filters():
        assert not {"img", "out", "device", "width", "height"} & set(chain.params(name))


@given(radius=numbers, sigma=numbers)
def test_numbers_are_parsed_exactly(radius, sigma):
    given_ = {"radius": radius, "sigma": sigma}
    text = ",".join(f"{name}={value!r}" for name, value in given_.items())
    name, found = chain.parse("blur", text)
    assert (name, found) == ("blur", given_)
    assert [type(value) for value in found.values()] == [type(radius), type(sigma)]


@given(st.lists(numbers, min_size=2, max_size=9))
def test_lists_of_numbers(values):
    text = ":".join(map(repr, values))
    assert chain.parse("warp_affine", f"matrix={text}") == (
        "warp_affine",
        {"matrix": tuple(values)},
    )


@given(st.lists(st.sampled_from(
    [["--sepia"], ["--blur", "radius=3"], ["--gamma", "-2"], ["a.png"], ["--json"], ["--lut", "x"],
     ["--device", "cpu"], ["--hue=degrees=3"]]
), max_size=8))  # fmt: skip
def test_join_keeps_order_and_moves_paths_last(words):
    joined = chain.join([word for group in words for word in group], FLAGS)
    paths = [group[0] for group in words if group == ["a.png"]]
    rest = [group for group in words if group != ["a.png"]]
    assert joined[len(joined) - len(paths) :] == paths
    options = [word.partition("=")[0] for word in joined if word.startswith("--")]
    assert options == [group[0].partition("=")[0] for group in rest]


@given(st.text(max_size=30))
def test_any_text_is_parsed_or_raises_parameter_error(text):
    for name in ("blur", "curves", "resize", "overlay", "lut"):
        try:
            found, params = chain.parse(name, text)
        except ParameterError:
            continue
        assert found == chain.SHORT.get(name, name)
        assert set(params) <= set(chain.params(found))


def test_everything_after_two_dashes_is_a_path():
    assert chain.join(["--sepia", "--", "--x.png", "b"], FLAGS) == [
        "--sepia=",
        "--",
        "--x.png",
        "b",
    ]


@pytest.mark.parametrize("text", ["radius", "radius=3,4", "=3", "radius=3,sigma"])
def test_malformed_parameters(text):
    with pytest.raises(ParameterError, match="--blur: "):
        chain.parse("blur", text)
