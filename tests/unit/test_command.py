"""The command protocol: the bytes of every command, decoding, and refused values."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dala import errors
from dala.gpu import command
from dala.gpu.color import NAMED
from dala.gpu.command import Command, DrawCommand, color_to_rgba, decode, encode_batch
from dala.gpu.protocol import BY_OPCODE, MAX_DEPTH

RGBA = b"\x0a\x14\x1e\x28"
COLOR = (10, 20, 30, 40)

LINE = command.PathData(bytes([0, 1]), struct.pack("<4d", 1, 2, 3, 4))
LINE_BYTES = struct.pack("<II", 2, 2) + LINE.verbs + LINE.points
DASH = struct.pack("<I2d", 2, 5, 6)

#: One call of each encoder, and its bytes as the protocol defines them.
EXAMPLES = [
    ("clear", (COLOR,), b"\x01" + RGBA),
    ("fill_rect", (1, 2, 3, 4, COLOR), b"\x02" + struct.pack("<4I", 1, 2, 3, 4) + RGBA),
    ("draw_line", (-1, 2, -3, 4, COLOR), b"\x03" + struct.pack("<4i", -1, 2, -3, 4) + RGBA),
    ("blit", (2**63, -5, 6), b"\x04" + struct.pack("<Qii", 2**63, -5, 6)),
    ("present", (), b"\x05"),
    ("resize", (640, 480), b"\x06" + struct.pack("<II", 640, 480)),
    (
        "load_sprite",
        (7, bytes(range(8)), 2, 1),
        b"\x07" + struct.pack("<QII", 7, 2, 1) + bytes(range(8)),
    ),
    ("remove_sprite", (7,), b"\x08" + struct.pack("<Q", 7)),
    (
        "dispatch_compute",
        ("né", b"\x01\x02", (3, 4, 5)),
        b"\x09\x03\0\0\0n\xc3\xa9\x02\0\0\0\x01\x02" + struct.pack("<III", 3, 4, 5),
    ),
    ("read_pixels", (1, 2, 3, 4), b"\x0a" + struct.pack("<4I", 1, 2, 3, 4)),
    ("load_shader", ("blur", "src"), b"\x0b\x04\0\0\0blur\x03\0\0\0src"),
    ("set_uniform", ("radius", b"\0\0\xa0\x40"), b"\x0c\x06\0\0\0radius\x04\0\0\0\0\0\xa0\x40"),
    ("draw_circle", (-1, -2, 3, COLOR), b"\x0d" + struct.pack("<iiI", -1, -2, 3) + RGBA),
    ("fill_circle", (-1, -2, 3, COLOR), b"\x0e" + struct.pack("<iiI", -1, -2, 3) + RGBA),
    (
        "draw_triangle",
        (1, -2, 3, -4, 5, -6, COLOR),
        b"\x0f" + struct.pack("<6i", 1, -2, 3, -4, 5, -6) + RGBA,
    ),
    (
        "fill_triangle",
        (1, -2, 3, -4, 5, -6, COLOR),
        b"\x10" + struct.pack("<6i", 1, -2, 3, -4, 5, -6) + RGBA,
    ),
    ("draw_round_rect", (1, 2, 3, 4, 5, COLOR), b"\x11" + struct.pack("<5I", 1, 2, 3, 4, 5) + RGBA),
    ("fill_round_rect", (1, 2, 3, 4, 5, COLOR), b"\x12" + struct.pack("<5I", 1, 2, 3, 4, 5) + RGBA),
    ("set_clip", (1, 2, 3, 4, False), b"\x13" + struct.pack("<4I", 1, 2, 3, 4) + b"\0"),
    ("reset_clip", (), b"\x14"),
    ("batch", ([b"\x05", b"\x14"],), b"\x15\x02\0\0\0\x05\x14"),
    ("image_blit", (9, -1, 2, 3, 4), b"\x16" + struct.pack("<QiiII", 9, -1, 2, 3, 4)),
    ("load_image", (9, bytes(4), 1, 1), b"\x17" + struct.pack("<QII", 9, 1, 1) + bytes(4)),
    ("remove_image", (9,), b"\x18" + struct.pack("<Q", 9)),
    (
        "draw_round_rect_signed",
        (-1, 2, 3, 4, 5, COLOR),
        b"\x19" + struct.pack("<iiIII", -1, 2, 3, 4, 5) + RGBA,
    ),
    (
        "fill_round_rect_signed",
        (1, -2, 3, 4, 5, COLOR),
        b"\x1a" + struct.pack("<iiIII", 1, -2, 3, 4, 5) + RGBA,
    ),
    ("load_path", (7, LINE), b"\x1b" + struct.pack("<Q", 7) + LINE_BYTES),
    ("remove_path", (7,), b"\x1c" + struct.pack("<Q", 7)),
    ("fill_path", (7, "evenodd", 9, COLOR), b"\x1d" + struct.pack("<QBQ", 7, 1, 9) + RGBA),
    ("stroke_path", (7, 2, "round", "bevel", 4, 1, 9, COLOR, [5, 6]),
     b"\x1e" + struct.pack("<QdBBddQ", 7, 2, 1, 2, 4, 1, 9) + RGBA + DASH),
    ("fill_shape", ("nonzero", 0, COLOR, LINE),
     b"\x1f" + struct.pack("<BQ", 0, 0) + RGBA + LINE_BYTES),
    ("stroke_shape", (2, "square", "round", 4, 1, 9, COLOR, [5, 6], LINE),
     b"\x20" + struct.pack("<dBBddQ", 2, 2, 1, 4, 1, 9) + RGBA + DASH + LINE_BYTES),
    ("push", (), b"\x21"),
    ("pop", (), b"\x22"),
    ("transform", (1, 2, 3, 4, 5, 6), b"\x23" + struct.pack("<6d", 1, 2, 3, 4, 5, 6)),
    ("clip_shape", ("evenodd", LINE), b"\x24\1" + LINE_BYTES),
    ("load_gradient", (7, "conic", "reflect", "oklab", True, 1, 2, 3, 4, 5, 6, [5, 6]),
     b"\x25" + struct.pack("<QBBBB6d", 7, 2, 2, 2, 1, 1, 2, 3, 4, 5, 6) + DASH),
    ("load_pattern", (7, 8, "repeat", "nearest", 1, 2, 3, 4, 5, 6),
     b"\x26" + struct.pack("<QQBB6d", 7, 8, 1, 1, 1, 2, 3, 4, 5, 6)),
    ("remove_paint", (7,), b"\x27" + struct.pack("<Q", 7)),
    ("begin_layer", (0.5, "add", "[]"), b"\x28" + struct.pack("<dBI", 0.5, 1, 2) + b"[]"),
    ("end_layer", (), b"\x29"),
    ("load_mask", (7, 2, 1, b"ab"), b"\x2a" + struct.pack("<QIII", 7, 2, 1, 2) + b"ab"),
    ("remove_mask", (7,), b"\x2b" + struct.pack("<Q", 7)),
    ("draw_masks", (9, COLOR, [(7, -1, 2)]),
     b"\x2c" + struct.pack("<Q", 9) + RGBA + struct.pack("<IQii", 1, 7, -1, 2)),
]  # fmt: skip


def test_every_opcode_has_an_example():
    assert [example[2][0] for example in EXAMPLES] == list(range(1, 0x2D)) == sorted(BY_OPCODE)


@pytest.mark.parametrize(("name", "args", "data"), EXAMPLES, ids=[e[0] for e in EXAMPLES])
def test_bytes_of_each_command(name, args, data):
    assert getattr(command, f"encode_{name}")(*args) == data
    (made,) = decode(data)
    assert (made.name, made.opcode, made.offset) == (name, data[0], 0)
    assert made.encode() == data


FLOATS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = {
    "u32": st.integers(0, 2**32 - 1),
    "i32": st.integers(-(2**31), 2**31 - 1),
    "u64": st.integers(0, 2**64 - 1),
    "flag": st.booleans(),
    "rgba": st.tuples(*[st.integers(0, 255)] * 4),
    "text": st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    "data": st.binary(max_size=20),
    "f64": FLOATS,
    "numbers": st.lists(FLOATS, max_size=4).map(tuple),
    "path": st.lists(st.tuples(FLOATS, FLOATS), max_size=4).map(
        lambda points: command.PathData(
            bytes(range(2))[: len(points)] + b"\1" * (len(points) - 2),
            b"".join(struct.pack("<2d", *point) for point in points),
        )
    ),
    "places": st.lists(
        st.tuples(st.integers(0, 2**64 - 1), *[st.integers(-(2**31), 2**31 - 1)] * 2), max_size=3
    ).map(tuple),
}


@st.composite
def one_command(draw, depth=2):
    code = draw(st.sampled_from([c for c in BY_OPCODE if depth or c != 0x15]))
    layout = BY_OPCODE[code]
    if layout.name == "batch":
        inner = draw(st.lists(one_command(depth - 1), max_size=4))
        return DrawCommand("batch", 0, {"commands": tuple(inner)})
    fields = {}
    for name, kind in layout.fields:
        if kind.name == "pixels":
            fields["w"], fields["h"] = draw(st.integers(0, 5)), draw(st.integers(0, 5))
            size = fields["w"] * fields["h"] * 4
            fields[name] = draw(st.binary(min_size=size, max_size=size))
        elif kind.names:
            fields[name] = draw(st.sampled_from(kind.names))
        else:
            fields[name] = draw(VALUES[kind.name])
    return DrawCommand(layout.name, 0, fields)


@given(st.lists(one_command(), max_size=8))
def test_decode_inverts_encode(commands):
    data = b"".join(c.encode() for c in commands)
    found = decode(data)
    assert found == commands
    offset = 0
    for made, wanted in zip(found, commands, strict=True):
        assert made.offset == offset
        offset += len(wanted.encode())
    assert b"".join(c.encode() for c in found) == data


@given(one_command(), st.data())
def test_truncated_commands_are_refused(made, data):
    whole = made.encode()
    cut = data.draw(st.integers(1, len(whole) - 1)) if len(whole) > 1 else 0
    if cut:
        with pytest.raises(errors.ProtocolError) as caught:
            decode(whole[:cut])
        assert 0 <= caught.value.offset <= cut
        assert "Nothing was applied" in str(caught.value)


@given(st.binary(max_size=300))
def test_any_bytes_are_decoded_or_refused(data):
    try:
        commands = decode(data)
    except errors.ProtocolError:
        return
    assert b"".join(c.encode() for c in commands) == data


@pytest.mark.parametrize(
    ("data", "offset", "opcode", "problem"),
    [
        (b"\x05\x00", 1, 0, "unknown opcode"),
        (b"\xff", 0, 0xFF, "unknown opcode"),
        (b"\x05\x15\x02\0\0\0\x01abcd", 11, None, "the data ends where a command should begin"),
        (
            b"\x15\xff\xff\xff\xff\x05",
            0,
            0x15,
            "the batch has 4294967295 commands, but only 1",
        ),
        (
            b"\x0b\xff\xff\xff\xffab",
            0,
            0x0B,
            "bytes are needed at offset 5, but only 2 are left",
        ),
        (b"\x0b\x01\0\0\0\xff\0\0\0\0", 0, 0x0B, "text is not valid UTF-8"),
        (
            b"\x07" + struct.pack("<QII", 1, 2**31, 2**31),
            0,
            7,
            "bytes are needed at offset 17, but only 0 are left",
        ),
        (b"\x13" + struct.pack("<4I", 0, 0, 1, 1) + b"\x07", 0, 0x13, "enabled must be 0 or 1"),
    ],
)
def test_malformed_bytes(data, offset, opcode, problem):
    with pytest.raises(errors.ProtocolError) as caught:
        decode(data)
    assert (caught.value.offset, caught.value.opcode) == (offset, opcode)
    assert problem in str(caught.value)


def test_nested_batches_have_a_limit():
    data = b"\x05"
    for _ in range(MAX_DEPTH):
        data = encode_batch([data])
    assert decode(data)[0].name == "batch"
    with pytest.raises(errors.ProtocolError, match=f"more than {MAX_DEPTH} deep"):
        decode(encode_batch([data]))


COLOR_FORMS = (
    'a CSS color name, "#rrggbb", "#rrggbbaa", (r, g, b) or (r, g, b, a) with ints from 0 to 255'
)


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("fill_rect", (-1, 0, 1, 1, "red"), "x must be an int from 0 to 4294967295, got -1."),
        (
            "fill_rect",
            (0, 0, 2**32, 1, "red"),
            "w must be an int from 0 to 4294967295, got 4294967296.",
        ),
        (
            "draw_line",
            (0, 0, 2**31, 0, "red"),
            "x2 must be an int from -2147483648 to 2147483647, got 2147483648.",
        ),
        (
            "draw_line",
            (0.5, 0, 1, 0, "red"),
            "x1 must be an int from -2147483648 to 2147483647, got 0.5.",
        ),
        (
            "draw_line",
            ("a", 0, 1, 0, "red"),
            "x1 must be an int from -2147483648 to 2147483647, got 'a'.",
        ),
        ("blit", (-1, 0, 0), "id must be an int from 0 to 18446744073709551615, got -1."),
        ("draw_circle", (0, 0, -1, "red"), "radius must be an int from 0 to 4294967295, got -1."),
        (
            "load_image",
            (1, bytes(5), 1, 1),
            "pixels must be 1 x 1 RGBA pixels of 4 bytes, got 5 bytes.",
        ),
        ("load_image", (1, "text", 1, 1), "pixels must be bytes or an array, got 'text'."),
        ("load_shader", (1, "x"), "name must be a str, got 1."),
        ("dispatch_compute", ("s", b"", 4), "workgroups must be three ints (x, y, z), got 4."),
        ("batch", ([b"\x05", "x"],), "commands[1] must be bytes made by encode_*, got 'x'."),
        ("batch", (5,), "commands must be a list of commands made by encode_*, got 5."),
        (
            "clear",
            ("rde",),
            f"color must be {COLOR_FORMS}, got 'rde'. Did you mean 'red'?",
        ),
        ("clear", ((1, 2, 256),), f"color must be {COLOR_FORMS}, got (1, 2, 256)."),
        ("clear", ((1, 2),), f"color must be {COLOR_FORMS}, got (1, 2)."),
        ("clear", ("#12345g",), f"color must be {COLOR_FORMS}, got '#12345g'."),
        ("clear", (5,), f"color must be {COLOR_FORMS}, got 5."),
    ],
)
def test_values_that_do_not_fit_are_refused(name, args, message):
    with pytest.raises(errors.DalaError) as caught:
        getattr(command, f"encode_{name}")(*args)
    assert str(caught.value) == f"{name}: {message}"
    assert caught.value.call == name
    assert caught.value.argument == message.split(" ")[0]


def test_former_name_of_a_decoded_command():
    assert Command is DrawCommand


def test_integral_numbers_of_other_types():
    plain = command.encode_draw_line(1, 2, 3, 4, "red")
    assert command.encode_draw_line(np.int64(1), 2.0, np.uint8(3), 4, "red") == plain


def test_colors():
    assert len(NAMED) == 149
    assert color_to_rgba("RebeccaPurple") == b"\x66\x33\x99\xff"
    assert color_to_rgba("transparent") == bytes(4)
    assert color_to_rgba("#123") == b"\x11\x22\x33\xff"
    assert color_to_rgba("#1234") == b"\x11\x22\x33\x44"
    assert color_to_rgba([1, 2, 3, 4]) == b"\x01\x02\x03\x04"
    assert color_to_rgba(np.array([1, 2, 3])) == b"\x01\x02\x03\xff"
