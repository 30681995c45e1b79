"""A new command takes two files: its row, and the native code that draws it."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

import dala.gpu
from dala.gpu.compute.engines.cpu.cache import ObjectCache
from dala.gpu.compute.engines.cpu.jit import Jit
from dala.gpu.compute.engines.cpu.native import compile_native
from dala.gpu.protocol import CommandRow, i32, u32
from dala.gpu.raster import bands, stream
from tests.support import command_stubs

GPU = pathlib.Path(dala.gpu.__file__).parent
ROOT = pathlib.Path(__file__).parents[3]

ROW = '''
@command(0x7E, draws="cross", call="draw_cross cx cy r color")
def draw_cross(cx: i32, cy: i32, radius: u32, color: rgba) -> None:
    """Draw an upright cross. Its arms are lines.

    >>> encode_draw_cross(1, 2, 3, "red").hex(" ", 4)
    '7e 01000000 02000000 03000000 ff0000ff'
    """


'''
NATIVE = '''

@native
def cross(data: Array[u8], at: i64, on: DrawTarget, *, filled: bool, signed: bool) -> None:
    """Draw a cross."""
    x, y, r = read_i32(data, at + 1), read_i32(data, at + 5), read_u32(data, at + 9)
    color = read_color(data, at + 13)
    draw_line(on, x - r, y, x + r, y, color, 1)
    draw_line(on, x, y - r, x, y + r, color, 1)
'''

#: Imports the two modules from the folder in the arguments, and looks for what is derived.
SCRIPT = """
import importlib.util, inspect, sys

class Finder:
    files = {"dala.gpu.command": "command.py", "dala.gpu.raster.commands": "commands.py"}

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        file = cls.files.get(name)
        return file and importlib.util.spec_from_file_location(name, f"{sys.argv[1]}/{file}")

sys.meta_path.insert(0, Finder)
from dala import gpu
from dala.gpu import command
from dala.gpu.raster import Canvas, bands
from dala.gpu.protocol import OPCODES

sys.path.append(sys.argv[2])
from tests.support import command_stubs

data = command.encode_draw_cross(4, 5, 2, "red")
assert data.hex(" ", 4) == "7e 04000000 05000000 02000000 ff0000ff", data
assert "encode_draw_cross" in command.__all__ and "draw_cross" in gpu.__all__
assert command.encode_draw_cross.__doc__.startswith("Return the command to draw an upright cross.")
assert ">>> encode_draw_cross(1" in command.encode_draw_cross.__doc__
print(command.decode(data)[0])
print(inspect.signature(gpu.draw_cross))
print(gpu.draw_cross.__doc__.strip())
for wrong in (data[:-1], data + b"?"):
    try:
        Canvas(4, 4).check(wrong)
    except gpu.protocol.ProtocolError as error:
        print(error)
with gpu.create_surface(9, 40) as s, gpu.create_surface(9, 40) as other:
    gpu.draw_cross(s, 4, 5, 2, "red")
    s.draw_cross(cx=4, cy=30, r=3, color="#00ff00")
    other.batch([data, command.encode_draw_cross(4, 30, 3, "lime")])
    assert s.get_pixels() == other.get_pixels()
    found = s.to_array()
    print((found[..., 0] > 0).sum(), (found[..., 1] > 0).sum())
    bands.MIN_CANVAS_BYTES = bands.MIN_COMMAND_BYTES = 0
    other.clear("transparent")
    other.batch([data, command.encode_draw_cross(4, 30, 3, "lime")])
    assert s.get_pixels() == other.get_pixels()
    try:
        s.draw_cross(0, 0, -1, "red")
    except gpu.protocol.CommandError as error:
        print(error)
table = "\\n".join(command_stubs.table())
for text in (command_stubs.command_stub(), command_stubs.draw_stub(), table):
    print(*(line.strip() for line in text.splitlines() if "cross" in line), sep="\\n")
"""

WANTED = """\
<draw_cross cx=4 cy=5 radius=2 color=(255, 0, 0, 255) at 0>
(s: 'Surface', cx: 'int', cy: 'int', r: 'int', color: 'ColorLike') -> 'None'
Draw an upright cross. Its arms are lines.
{malformed}9 13
draw_cross: radius must be an int from 0 to 4294967295, got -1.
def encode_draw_cross(cx: int, cy: int, radius: int, color: ColorLike) -> bytes:
\"\"\"Return the command to draw an upright cross.\"\"\"
"draw_cross",
def draw_cross(s: Surface, cx: int, cy: int, r: int, color: ColorLike) -> None:
\"\"\"Draw an upright cross.\"\"\"
def draw_cross(self, cx: int, cy: int, r: int, color: ColorLike) -> None:
\"\"\"Draw an upright cross.\"\"\"
| 0x7E | `draw_cross` | cx i32, cy i32, radius u32, color rgba | `draw_cross` | Draw an upright \
cross. Its arms are lines. |
"""


def test_row_and_native_function_are_enough(tmp_path):
    text = (GPU / "command.py").read_text()
    end = text.index("# encoders with arguments of their own")
    (tmp_path / "command.py").write_text(text[:end] + ROW.lstrip() + text[end:])
    native = (GPU / "raster" / "commands.py").read_text()
    (tmp_path / "commands.py").write_text(native + NATIVE)
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py"), str(tmp_path), str(ROOT)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines(keepends=True)
    malformed = "".join(line for line in lines if "Nothing was applied" in line)
    assert malformed.count("\n") == 2
    assert done.stdout == WANTED.replace("{malformed}", malformed)


@pytest.mark.parametrize("path", command_stubs.files(), ids=lambda path: path.name)
def test_generated_file_is_current(path):
    """``python -m tests.support.command_stubs`` writes them."""
    text = path.read_text(encoding="utf-8")
    assert command_stubs.files()[path](text) == text


def test_commands_with_unknown_fields_may_touch_all_rows():
    def thick(x1: i32, y1: i32, x2: i32, y2: i32, width: u32) -> None: ...
    def thin(x1: i32, y1: i32, x2: i32, y2: i32) -> None: ...

    for function, kinds in ((thick, [i32] * 4 + [u32]), (thin, [i32] * 4)):
        function.__annotations__ = dict(zip(function.__annotations__, kinds, strict=False))
    assert bands.extent(CommandRow(0x7E, thick)) == (0, False, (), 0, 0)
    assert bands.extent(CommandRow(0x7E, thin)) == (5, True, (13,), 0, 0)


def test_code_of_commands_is_cached(tmp_path):
    """A name in it that cannot be identified would compile it in every process."""
    for compiled in (True, False):
        jit = Jit(ObjectCache(tmp_path))
        for function, statics in (
            (stream.check, {}), (stream.execute, {"families": 0}), (bands.plan, {}),
        ):  # fmt: skip
            code = compile_native(function, compiler=jit, **statics)
            assert ("_emitted" in vars(code)) == compiled
