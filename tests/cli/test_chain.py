"""Parsing of filters on the command line."""

import contextlib
import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dala import cli
from dala.cli.common import chain
from dala.errors import DalaError, ParameterError
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


def join(*words):
    return chain.join(words, FLAGS, "dala filter IN OUT")


#: Options with their values, complete: one more word is no value of theirs.
GROUPS = [["--sepia", "1"], ["--blur", "radius=3"], ["--gamma", "-2"], ["--json"], ["--lut", "x"],
          ["--device", "cpu"], ["--hue=degrees=3"], ["--resize", "640x"],
          ["--grayscale"]]  # fmt: skip


@given(st.lists(st.sampled_from(GROUPS), max_size=6), st.integers(0, 6), st.integers(1, 3))
def test_join_keeps_order_and_moves_paths_last(groups, at, count):
    paths = [["a.png", "lots", "3"][:count]]  # they may look like values
    words = groups[:at] + paths + groups[at:]
    joined = join(*(word for group in words for word in group))
    assert joined[-count:] == paths[0]
    options = [word.partition("=")[0] for word in joined if word.startswith("--")]
    assert options == [group[0].partition("=")[0] for group in groups]


WORDS = ["--sepia", "--grayscale", "--resize", "--lut", "--json", "--device", "--", "-", "-3", "-h",
         "--quality", "--blur=", "--", "a.png", "640x", "radius=3", "lots", "", "=", "--no",
         "é,:="]  # fmt: skip


@given(st.sampled_from(cli.COMMANDS), st.lists(st.sampled_from(WORDS) | st.text(max_size=4)))
@example("filter", ["a.jpg", "b.png", "--brightness", "lots"])
@example("filter", ["a.jpg", "b.png", "--grayscale", "lots"])
@example("filter", ["a.jpg", "--sepia", "b.png"])
@example("filter", ["--device", "--", "a", "b", "--sepia"])
@example("filter", ["a", "b", "--sepia", "-3"])
@example("filter", ["a", "b", "--quality", "1" * 5000])
@example("filter", ["a", "b", "--resize", "9" * 5000 + "x1"])
@example("view", ["--", "-1"])
@example("view", ["a", "b"])
@example("demo", ["--size", "640x"])
@example("demo", ["--seconds", "nan"])
@example("detect", ["a.jpg", "--score", "lots"])
@example("compose", ["-o"])
@example("models", ["fly"])
def test_arguments_are_understood_or_refused_in_one_line(command, words):
    said, code, args = io.StringIO(), 0, None
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            args = cli.parse([command, *words])[2]
        except SystemExit as end:
            code = end.code
    if args is None:
        assert code in (0, None, 2)
        assert not code or said.getvalue().startswith(f"dala {command}: ")
        return
    if command not in ("filter", "view"):
        return  # the others' options take one word each, or none
    paths = args.paths if command == "filter" else [args.source]
    # Paths are one run of the words, and never the word after an option that takes a value.
    plain = [word for word in words if word != "--"]
    starts = [n for n in range(len(words)) if words[n : n + len(paths)] == paths]
    assert starts or plain == paths
    free = [n for n in starts if n == 0 or not takes_value(words[n - 1])]
    assert free, (words, paths)


def takes_value(option):
    name = option.removeprefix("--").replace("-", "_")
    if option.startswith("--") and (name in chain.SHORT or name in chain.filters()):
        return name in chain.SHORT or bool(chain.params(name))
    return option in ("--device", "--quality", "--show", "--seconds", "--format")


@pytest.mark.parametrize(("words", "said"), [
    (["--brightness", "lots"], "--brightness: value must be a number, got 'lots'."),
    (["--blur", "lots"], "--blur: radius must be an int from 0 to 200, got 'lots'."),
    (["--resize", "640"], "--resize: size must be WxH such as 640x360, or 640x or x360, which keep "
                          "the aspect, got '640'."),
    (["--resize", "x"], "--resize: size must be WxH such as 640x360, or 640x or x360, which keep "
                        "the aspect, got 'x'."),
    (["--resize", "9x9,antialias=maybe"],
     "--resize: antialias must be true or false, got 'maybe'."),
    (["--chroma_key", "greeen"],
     "--chroma_key: key must be a color such as red or #f80, or 3 numbers with colons between, "
     "such as 1:1:1, got 'greeen'."),
    (["--curves", "0:1:2"],
     "--curves: master must be points x:y:x:y.., such as 0:0:0.5:0.6:1:1, got '0:1:2'."),
    (["--grayscale", "lots"], "--grayscale: takes no value, got 'lots'."),
    (["--grayscale=lots"], "--grayscale: takes no value, got 'lots'."),
    (["--blur", ""], "--blur: the value is empty. It takes: radius, sigma"),
    (["--blur", "3", "lots"], "'lots' after --blur is neither a value nor a path."),
    (["-3"], "-3: no such filter or option."),
])  # fmt: skip
def test_a_value_that_does_not_parse_is_an_error(words, said):
    with pytest.raises(ParameterError) as caught:
        join("a.jpg", "b.png", *words)
    assert str(caught.value).startswith(said)
    with pytest.raises(ParameterError):  # wherever the paths are
        join(*words, "--", "a.jpg", "b.png")


def test_a_path_in_the_place_of_a_value():
    with pytest.raises(ParameterError) as caught:
        join("--sepia", "a.jpg", "b.png")
    assert str(caught.value) == (
        "--sepia: amount must be a number from 0 to 1, got 'a.jpg'. Paths stand before the "
        "filters: dala filter IN OUT --sepia"
    )


@given(st.text(max_size=30))
def test_any_text_is_parsed_or_raises_parameter_error(text):
    for name in ("blur", "curves", "resize", "overlay", "lut"):
        try:
            found, params = chain.parse(name, text)
        except ParameterError:
            continue
        assert found == chain.SHORT.get(name, name)
        assert set(params) <= set(chain.params(found))


PARTS = st.sampled_from(["3", "-0.5", "1e400", "nan", "1:2:3", "640x", "0x0", "true", "a.png", "",
                         "size=9x", "radius=2", "method=area", "key=1", "value=9",
                         "amount=-9"])  # fmt: skip


@given(st.sampled_from(sorted(gpu.filters())), st.lists(PARTS, min_size=1, max_size=3))
@example("resize", ["1000000x1000000"])
@example("resize", ["99999999x"])
@example("curves", ["0:0:0:0"])
@example("grain", ["size=2"])
def test_values_are_checked_before_anything_is_written(name, parts):
    with contextlib.suppress(DalaError, OSError):
        chain.load([chain.parse(name, ",".join(parts))], 1 << 20)


def test_everything_after_two_dashes_is_a_path():
    assert join("--sepia", "--", "--x.png", "b") == [
        "--sepia=",
        "--",
        "--x.png",
        "b",
    ]


@pytest.mark.parametrize(
    "text", ["radius", "radius=3,4", "3,4", "=3", "radius=3,sigma", "3,", ",3"]
)
def test_malformed_parameters(text):
    with pytest.raises(ParameterError, match="--blur: "):
        chain.parse("blur", text)
