"""Every filter, exported and run in a browser, gives the desktop's WebGPU result."""

import pytest

import dala.web
from dala.errors import ParameterError
from dala.media.filters.declarations import filter_names
from dala.web.controls import Control
from tests.support.tolerances import assert_close
from tests.support.web import HEIGHT, WIDTH, WebPage, example, noise, on_desktop


@pytest.mark.long
@pytest.mark.parametrize("name", filter_names())
def test_filter_in_a_browser(web: WebPage, name: str) -> None:
    chain = [(name, example(name))]
    dala.web.export(chain, web.folder / name)
    picture = noise(HEIGHT, WIDTH)
    made = web.run(name, picture)
    assert_close(made, on_desktop(picture, chain).reshape(made.shape), "webgpu", "program")


def moved(control: Control) -> object:
    """Return another position of a control, as both sides take it."""
    if control.type == "choice":
        return control.choices[(int(control.values[0]) + 1) % len(control.choices)]
    if control.type == "bool":
        return not control.values[0]
    positions = control.positions()
    value = positions[len(positions) // 3]
    if value == control.values[0]:
        value = positions[len(positions) // 3 + 1]
    return value if len(control.symbols) == 1 else [value] * len(control.symbols)


@pytest.mark.long
@pytest.mark.parametrize("name", filter_names())
def test_controls_in_a_browser(web: WebPage, name: str) -> None:
    """Every control of every filter, moved one at a time, gives the desktop's result."""
    given = example(name)
    made = dala.web.export([(name, given)], web.folder / f"{name}-moved")
    picture = noise(HEIGHT, WIDTH)
    for control in made.plan.live:
        value = moved(control)
        chosen = tuple(value) if isinstance(value, list) else value
        try:
            want = on_desktop(picture, [(name, {**given, control.param: chosen})])
        except ParameterError:  # below another parameter, for example
            with pytest.raises(Exception, match="not exported for this size or these parameters"):
                web.run(f"{name}-moved", picture, **{control.name: value})
            continue
        got = web.run(f"{name}-moved", picture, **{control.name: value})
        assert_close(got, want.reshape(got.shape), "webgpu", "program")
