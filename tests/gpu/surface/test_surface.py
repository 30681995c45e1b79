"""Surfaces: calls, arguments and bytes."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from dala import gpu
from dala.errors import (
    ColorError,
    CommandError,
    FreedError,
    ProtocolError,
)
from dala.gpu import Surface, command, create_surface
from tests.gpu.surface.painting import GREEN, RED, model

#: The calls and their arguments after the surface.
CALLS = {
    "batch": "commands",
    "blit": "id x y",
    "clear": "color",
    "destroy_surface": "",
    "dispatch_compute": "shader params workgroups",
    "draw_circle": "cx cy r color width",
    "draw_image": "id x y dest_w dest_h",
    "draw_line": "x1 y1 x2 y2 color width",
    "draw_round_rect": "x y w h radius color width",
    "draw_triangle": "x1 y1 x2 y2 x3 y3 color width",
    "fill_circle": "cx cy r color",
    "fill_rect": "x y w h color",
    "fill_round_rect": "x y w h radius color",
    "fill_triangle": "x1 y1 x2 y2 x3 y3 color",
    "get_pixels": "",
    "load_image": "id rgba w h",
    "load_shader": "name source",
    "load_sprite": "id rgba w h",
    "present": "",
    "read_pixels": "x y w h",
    "remove_image": "id",
    "remove_sprite": "id",
    "reset_clip": "",
    "resize": "w h",
    "set_clip": "x y w h enabled",
    "set_pixels": "rgba",
    "set_uniform": "name data",
    "supports_compute": "",
    "wait_closed": "timeout",
    "with_pixels": "fn",
    "arc": "cx cy r start end paint width cap dash",
    "circle": "cx cy r paint width",
    "clip": "path rule",
    "draw_masks": "paint color places",
    "ellipse": "cx cy rx ry paint width",
    "fill": "path paint rule",
    "image": "picture x y w h filter",
    "layer": "opacity blend shadow blur filters",
    "line": "x1 y1 x2 y2 paint width cap dash",
    "load_gradient": "id kind spread space dither a b c d e f stops",
    "load_mask": "id w h coverage",
    "load_path": "id path",
    "load_pattern": "id image spread sampling a b c d e f",
    "polygon": "points paint width",
    "polyline": "points paint width cap join dash",
    "pop": "",
    "push": "",
    "rect": "x y w h paint width radius",
    "remove_mask": "id",
    "remove_paint": "id",
    "remove_path": "id",
    "stroke": "path paint width cap join miter dash offset",
    "transform": "a b c d e f",
    "transformed": "translate rotate scale matrix",
}
OTHERS = {
    "Surface", "Path", "LinearGradient", "RadialGradient", "ConicGradient", "Pattern",
    "text", "measure_text", "svg",
}  # fmt: skip


SPRITE = bytes(range(2 * 3 * 4))


#: Drawing calls with arguments, and the encoder of the same command.
DRAWN = [
    ("clear", ("#203040",), command.encode_clear),
    ("fill_rect", (3, 4, 10, 5, "red"), command.encode_fill_rect),
    ("draw_line", (-3, 2, 40, 20, (1, 2, 3, 128)), command.encode_draw_line),
    ("draw_circle", (12, 12, 9, "lime"), command.encode_draw_circle),
    ("fill_circle", (20, 5, 7, (0, 0, 255, 100)), command.encode_fill_circle),
    ("draw_triangle", (1, 1, 30, 4, 9, 22, "white"), command.encode_draw_triangle),
    ("fill_triangle", (2, 20, 28, 22, 15, 3, (9, 9, 9, 77)), command.encode_fill_triangle),
    ("draw_round_rect", (2, 2, 20, 14, 5, "gold"), command.encode_draw_round_rect),
    ("fill_round_rect", (6, 6, 20, 14, 5, "#ff00ff80"), command.encode_fill_round_rect),
    ("load_sprite", (7, SPRITE, 2, 3), command.encode_load_sprite),
    ("blit", (7, 5, 6), command.encode_blit),
    ("load_image", (2**64 - 1, SPRITE, 3, 2), command.encode_load_image),
    ("draw_image", (2**64 - 1, 4, 1, 17, 11), command.encode_image_blit),
    ("set_clip", (4, 4, 9, 9), command.encode_set_clip),
    ("fill_rect", (0, 0, 50, 50, (200, 100, 0, 50)), command.encode_fill_rect),
    ("reset_clip", (), command.encode_reset_clip),
    ("set_clip", (4, 4, 9, 9, False), command.encode_set_clip),
    ("draw_line", (0, 23, 31, 0, "teal"), command.encode_draw_line),
    ("remove_sprite", (7,), command.encode_remove_sprite),
    ("remove_image", (2**64 - 1,), command.encode_remove_image),
]


# calls --------------------------------------------------------------------------------------------


def test_every_call_is_a_function_and_a_method_with_the_same_arguments():
    for name, wanted in CALLS.items():
        function = list(inspect.signature(getattr(gpu, name)).parameters.values())
        method = list(inspect.signature(getattr(Surface, name)).parameters.values())
        assert " ".join(p.name for p in function[1:]) == wanted, name
        if name != "destroy_surface":
            assert [(p.name, p.default) for p in function[1:]] == [
                (p.name, p.default) for p in method[1:]
            ], name
    assert {*CALLS, *OTHERS, "create_surface", "command", "compute"} == set(gpu.__all__)
    assert set(dir(gpu)) >= set(gpu.__all__)


@pytest.mark.parametrize("way", ["functions", "methods", "batch", "bytes"])
def test_every_drawing_call_draws_like_its_encoded_command(s, way):
    data = [encode(*arguments) for _, arguments, encode in DRAWN]
    if way == "functions":
        for name, arguments, _ in DRAWN:
            assert getattr(gpu, name)(s, *arguments) is None
    elif way == "methods":
        for name, arguments, _ in DRAWN:
            assert getattr(s, name)(*arguments) is None
    elif way == "batch":
        gpu.batch(s, data)
    else:
        s.submit(b"".join(data))
    assert s.get_pixels() == model(32, 24, b"".join(data))
    assert s.errors == []


@pytest.mark.parametrize("name", [n for n in CALLS if n not in ("destroy_surface", "wait_closed")])
def test_every_call_refuses_a_destroyed_surface(name):
    s = create_surface(4, 4)
    s.close()
    arguments = arguments_for(name)
    with pytest.raises(FreedError, match=rf"^{name}: the surface was destroyed"):
        entered(getattr(gpu, name)(s, *arguments))
    with pytest.raises(FreedError, match=rf"^{name}: the surface was destroyed"):
        entered(getattr(s, name)(*arguments))


def entered(made):
    """Enter what a call returns: those of blocks begin there."""
    with made:
        pass


def arguments_for(name):
    one = {
        "color": "red", "rgba": b"\0" * 64, "commands": [b"\x14"], "shader": "x", "params": b"",
        "workgroups": (1, 1, 1), "source": "x", "name": "x", "data": b"x", "enabled": True,
        "fn": lambda pixels: None, "w": 4, "h": 4, "path": gpu.Path.circle(1, 1, 1),
        "paint": "red", "points": [(0, 0), (1, 1)], "picture": np.zeros((2, 2, 4), np.uint8),
        "rule": "nonzero", "cap": "butt", "join": "miter", "dash": (), "kind": "linear",
        "spread": "pad", "space": "srgb", "stops": [0, 1, 1, 1, 1], "sampling": "linear",
        "places": [], "coverage": b"", "blend": "over", "shadow": None, "filters": (),
        "width": 1, "filter": "linear", "translate": (0, 0), "matrix": None,
    }  # fmt: skip
    if name == "draw_masks":
        one["paint"] = 0
    return [one.get(a, 1) for a in CALLS[name].split()]


@pytest.mark.parametrize("name", CALLS)
def test_every_call_refuses_another_first_argument(name):
    with pytest.raises(CommandError, match=rf"^{name}: s must be a Surface, got str"):
        entered(getattr(gpu, name)("surface", *arguments_for(name)))


def test_surface_may_be_destroyed_twice():
    s = create_surface(3, 3)
    assert not s.closed
    gpu.destroy_surface(s)
    s.destroy()
    s.close()
    assert s.closed
    assert repr(s) == "<Surface destroyed>"
    assert s.errors == []
    for fact in ("size", "width", "height", "stats"):
        with pytest.raises(FreedError, match="destroyed"):
            getattr(s, fact)


@pytest.mark.parametrize("bad", [0, -1, 16385, 1.5, "9", None, True, 2**40])
def test_sizes_are_checked(s, bad):
    with pytest.raises(CommandError, match="create_surface: width must be an int from 1 to 16384"):
        create_surface(bad, 3)
    with pytest.raises(CommandError, match="resize: h must be an int from 1 to 16384"):
        s.resize(3, bad)
    assert s.size == (32, 24)


def test_unknown_show_is_refused():
    with pytest.raises(CommandError, match="show must be"):
        create_surface(3, 3, show="hologram")


# arguments ----------------------------------------------------------------------------------------

I32 = (-(2**31), 2**31 - 1)


U32 = (0, 2**32 - 1)


#: The numbers that arguments accept; p is a position, which need not fit the field u32.
RANGES = {"i": I32, "u": U32, "p": (I32[0], U32[1])}


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("fill_rect", "ppuu"),
        ("draw_line", "iiii"),
        ("draw_circle", "iiu"),
        ("fill_circle", "iiu"),
        ("draw_triangle", "iiiiii"),
        ("fill_triangle", "iiiiii"),
        ("draw_round_rect", "ppuuu"),
        ("fill_round_rect", "ppuuu"),
    ],
)
def test_extreme_numbers_are_drawn_and_larger_ones_refused(s, name, fields):
    s.clear("navy")
    for pick in range(2 ** len(fields)):
        chosen = [RANGES[f][pick >> n & 1] for n, f in enumerate(fields)]
        getattr(s, name)(*chosen, (255, 0, 0, 128))
    s.synchronize()
    before = s.get_pixels()
    for n, f in enumerate(fields):
        for beyond in (RANGES[f][0] - 1, RANGES[f][1] + 1):
            values = [1] * len(fields)
            values[n] = beyond
            with pytest.raises(CommandError, match=f"^{name}: .*, got {beyond}"):
                getattr(s, name)(*values, "red")
    with pytest.raises(ColorError, match="reddish"):
        getattr(s, name)(*[1] * len(fields), "reddish")
    assert s.get_pixels() == before
    assert s.errors == []


def test_extreme_numbers_of_images_clips_and_reads(s):
    s.load_sprite(0, RED, 1, 1)
    s.load_image(2**64 - 1, GREEN, 1, 1)
    for x in I32:
        s.blit(0, x, x)
        s.draw_image(2**64 - 1, x, x, 2**32 - 1, 2**32 - 1)
    assert s.get_pixels() == GREEN * 32 * 24
    s.set_clip(2**32 - 1, 0, 2**32 - 1, 2**32 - 1)
    s.clear("red")
    assert s.read_pixels(0, 0, 1, 1) == GREEN
    s.set_clip(0, 0, 2**32 - 1, 2**32 - 1)
    s.clear("red")
    assert s.read_pixels(31, 23, 1, 1) == RED
    with pytest.raises(CommandError, match="must lie inside the surface of 32 x 24"):
        s.read_pixels(2**32 - 1, 2**32 - 1, 2**32 - 1, 2**32 - 1)
    for bad in (-1, 2**32):
        with pytest.raises(CommandError, match="read_pixels: x"):
            s.read_pixels(bad, 0, 1, 1)
    with pytest.raises(CommandError, match="blit: id"):
        s.blit(2**64, 0, 0)


# bytes --------------------------------------------------------------------------------------------


def test_malformed_bytes_have_no_effect(s):
    s.clear("navy")
    good = command.encode_fill_rect(0, 0, 9, 9, "red")
    whole = command.encode_batch([good, good, command.encode_set_uniform("u", b"12345")])
    before = s.get_pixels()
    for cut in range(1, len(whole)):
        with pytest.raises(ProtocolError) as caught:
            s.submit(whole[:cut])
        assert caught.value.opcode in (0x15, 0x02, 0x0C, None)
    for n, bad in enumerate((b"\xff", good[:-1], b"\x13" + b"\0" * 16 + b"\2")):
        with pytest.raises(ProtocolError) as caught:
            s.batch([good, bad])
        assert (caught.value.offset, caught.value.opcode) == (5 + len(good), bad[0]), n
        assert f"byte {5 + len(good)}, opcode 0x{bad[0]:02X}" in str(caught.value)
    assert s.get_pixels() == before
    assert s.errors == []


@pytest.mark.parametrize("bad", [5, None, [1], [b""], ["x"], b"\x14", [b"\x14", None]])
def test_batch_refuses_other_values(s, bad):
    with pytest.raises(CommandError, match=r"^batch: commands"):
        s.batch(bad)
    assert s.stats["queue"] == 0


def test_submit_accepts_any_bytes_like_object(s):
    data = command.encode_fill_rect(0, 0, 32, 24, "red")
    for kind in (bytes, bytearray, memoryview, lambda d: np.frombuffer(d, np.uint8)):
        s.clear("black")
        given = kind(data)
        s.submit(given)
        if isinstance(given, bytearray):
            given[:] = bytes(len(given))  # they were copied
        assert s.get_pixels() == RED * 32 * 24
    s.submit(b"")
    s.batch([])
    with pytest.raises(CommandError, match="submit: data"):
        s.submit("text")


def test_read_pixels_commands_in_a_stream(s):
    s.clear("red")
    s.batch([
        command.encode_read_pixels(0, 0, 2, 1),
        command.encode_clear("lime"),
        command.encode_read_pixels(31, 23, 1, 1),
    ])  # fmt: skip
    assert s.take_reads() == [RED * 2, GREEN]
    assert s.take_reads() == []
    s.submit(command.encode_read_pixels(31, 0, 2, 1))
    with pytest.raises(CommandError, match="must lie inside"):
        s.take_reads()
