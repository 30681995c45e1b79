"""The public API is documented and typed."""

import inspect
import pickle

import pytest

import dala
from dala import errors
from tests.support import house
from tests.support.signatures import untyped_path


def test_every_public_thing_has_a_docstring_with_an_example():
    assert list(house.without_example()) == []


def test_public_signatures_are_typed():
    assert list(house.untyped()) == []


ERRORS = [getattr(errors, name) for name in errors.__all__]


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_has_its_attributes(kind):
    assert issubclass(kind, dala.DalaError)
    if inspect.signature(kind).parameters.keys() & {"problem", "problems"}:
        error = kind("clip", ["no such node"]) if kind is dala.SceneFileError else kind("wrong")
        assert (error.argument, error.expected, error.got) == (None,) * 3
        assert error.call == ("clip" if kind is dala.SceneFileError else None)
        return
    error = kind.invalid("blur", "radius", "an int from 0 to 64", "abc", "Did you mean 6?")
    assert str(error) == "blur: radius must be an int from 0 to 64, got 'abc'. Did you mean 6?"
    assert (error.call, error.argument) == ("blur", "radius")
    assert (error.expected, error.got) == ("an int from 0 to 64", "abc")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.call, copy.got) == (str(error), "blur", "abc")


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_can_name_an_outer_call(kind):
    error = kind("inner", ["wrong"]) if kind is dala.SceneFileError else kind("inner: wrong")
    error.call = "inner"
    outer = error.within("outer")
    assert type(outer) is kind
    assert outer.args[0].startswith("outer: ")
    assert (outer.call, error.call) == ("outer", "inner")


def test_syntax_errors_are_pickled_with_their_place():
    with pytest.raises(dala.KernelSyntaxError) as caught:
        dala.gpu.compute.kernel("def k(x):\n    import os\n    return x")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert (copy.lineno, copy.offset, copy.text) == (2, caught.value.offset, caught.value.text)


def test_an_outer_call_adds_its_name():
    inner = dala.ParameterError.invalid("blur", "radius", "an int", 1.5)
    outer = inner.within("process_frame: filters[1]")
    assert str(outer) == "process_frame: filters[1]: radius must be an int, got 1.5."
    assert (type(outer), outer.call, outer.argument, outer.got) == (
        dala.ParameterError,
        "process_frame: filters[1]",
        "radius",
        1.5,
    )
    assert str(inner) == "blur: radius must be an int, got 1.5."


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x" * 300, "'" + "x" * 76 + "..."),
        (object(), "object"),
        (None, "None"),
        (int, "int"),
        ([1, 2], "[1, 2]"),
    ],
)
def test_descriptions_of_values(value, text):
    assert errors.describe(value) == text


def test_aliases_of_any_are_found():
    assert untyped_path("list[Any]", "dala.typing") == ("Any",)
    assert untyped_path("Callable[[object], None]", "dala.typing") == ("object",)
    assert untyped_path("'Literal[\"object\"] | None'", "dala.typing") == ()
    module = "dala.media.scene.file.cost"  # imports the alias
    assert untyped_path("dict[str, JsonValue]", module) == ("JsonValue", "Any")
    assert untyped_path("Params | NDArray | Callable[[int], object]", "dala.typing") == ()
