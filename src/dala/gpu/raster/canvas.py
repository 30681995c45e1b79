"""The canvas: pixels, a clip, images and sprites, and the commands that draw on them."""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

import numpy as np

from dala.errors import BufferTooLarge, CommandError, DalaError, FreedError, ProtocolError
from dala.gpu.checks import checked_size
from dala.gpu.compute.engines.cpu.memory import Place, place_of
from dala.gpu.compute.engines.cpu.native import Native, compile_native
from dala.gpu.protocol import BY_OPCODE, Decoder
from dala.gpu.raster import stream
from dala.gpu.raster.atlas import Atlas
from dala.gpu.raster.bands import Bands, worth
from dala.gpu.raster.frame import (
    ALIGN,
    AT,
    BAND,
    CODE,
    NOWHERE,
    SHIFT,
    WIDTH,
    WORDS,
    X0,
    X1,
    Y0,
    Y1,
)
from dala.gpu.raster.images import Scratch, StoredImage, draw_image, make_image
from dala.gpu.raster.rounds import half_widths

#: The largest width and height of an image or a sprite.
MAX_SOURCE: Final = 1 << 24

Pixels = np.ndarray[Any, Any]

_IMAGE: Final = struct.Struct("<QiiII")
_IMAGE_SIZE: Final = 1 + _IMAGE.size
_SIZES: Final = stream.command_sizes()
_SIZES_PLACE: Final = place_of(_SIZES)
_WIDTHS: Final = half_widths()
_NOTHING: Final[Place] = (0, 0)


class Stop(NamedTuple):
    """A command that does not draw: its fields begin behind offset, the next command at end."""

    opcode: int
    offset: int
    end: int


class Fault(NamedTuple):
    """A command that could not be drawn, since no image or sprite has its id."""

    opcode: int
    offset: int
    id: int

    @property
    def error(self) -> DalaError:
        """What to tell the user."""
        name = BY_OPCODE[self.opcode].function
        thing = "sprite" if self.opcode == stream.BLIT else "image"
        return CommandError(
            f"{name}: there is no {thing} {self.id}. Load it first (load_{thing}); "
            "the command drew nothing."
        )


class Canvas:
    """A framebuffer and what is drawn on it. It belongs to one thread at a time."""

    #: Scaled images take the nearest pixel instead of a bilinear mean.
    nearest: bool = False
    #: Runs the build of native code that checks every access; for tests.
    _checked: bool = False
    #: The families of commands that code is in use for, by any canvas; None before the first.
    _kinds: int | None = None

    def __init__(self, width: int, height: int) -> None:
        self._pixels: Pixels | None = blank_pixels(
            checked_size("Canvas", "width", width), checked_size("Canvas", "height", height)
        )
        self._frame = np.zeros(WORDS, np.int64)
        self._dirty = np.zeros(0, np.int32)
        self._faults = np.zeros(1 + stream.FAULT * stream.FAULTS, np.int64)
        self._told: list[Fault] = []
        self._atlas = Atlas()
        self._images: dict[int, StoredImage] = {}
        self._scratch: Scratch | None = None
        self._bands: Bands | None = None
        self._places: tuple[Place, ...] = ()
        self._check: Native | None = None
        self._execute: tuple[int, bool, Native] | None = None
        self._start()

    def _start(self) -> None:
        """Forgets the clip and what changed."""
        frame = self._frame
        frame[WIDTH] = frame[X1] = self.width
        frame[Y1] = self.height
        frame[X0] = frame[Y0] = 0
        self._dirty = np.zeros(2 * (((self.height - 1) >> BAND) + 1), np.int32)
        self._dirty[::2] = NOWHERE
        self._places = ()
        self._bands = None

    @property
    def pixels(self) -> Pixels:
        """What is drawn on: (height, width, 4) bytes."""
        if self._pixels is None:
            raise FreedError("the canvas was closed. Make a new one.")
        return self._pixels

    @property
    def width(self) -> int:
        """In pixels."""
        return int(self.pixels.shape[1])

    @property
    def height(self) -> int:
        """In pixels."""
        return int(self.pixels.shape[0])

    # commands ---------------------------------------------------------------------------------
    def check(self, data: Any) -> None:
        """Raises ProtocolError if command bytes are malformed; draws nothing. Any thread may."""
        given = _bytes("check", data)
        if given.size == 0:
            return
        if self._check is None or self._check.checked != self._checked:
            self._check = compile_native(stream.check, checked=self._checked)
        at, depth = self._check(place_of(given), _SIZES_PLACE)
        if at >= 0:
            raise _malformed(given, at, depth)

    def run(self, data: Any, at: int = 0) -> Stop | None:
        """Draws what was checked, from a byte on, to the end or to a command that does not draw."""
        given = _bytes("run", data)
        if not 0 <= at <= given.size:
            raise CommandError(f"run: at is within 0..{given.size}, {at} came.")
        if at == given.size:
            return None
        places, where = self._places or self._find(), place_of(given)
        first, frame = Canvas._kinds is None, self._frame  # which is not kept waiting for bands
        kinds, execute = self._executor(given, at)
        while True:
            if given[at] == stream.IMAGE_BLIT and at + _IMAGE_SIZE <= given.size:
                self._image(at, *_IMAGE.unpack_from(given, at + 1))
                at += _IMAGE_SIZE
                if at == given.size:
                    return None
                continue
            if not first and worth(given, at, self.pixels.size):
                if self._bands is None:
                    self._bands = Bands(self.width, self.height)
                self._bands.draw(execute, where, places, frame, at, kinds=kinds)
            else:
                execute(where, *places, _NOTHING, 0, at, given.size)
            code, at = int(frame[CODE]), int(frame[AT])
            if code == stream.END:
                return None
            if code == stream.FULL:
                self._collect()
            elif code in stream.FAMILIES:
                Canvas._kinds = stream.ALL
                kinds, execute = self._executor(given, at)
            elif code != stream.IMAGE_BLIT:
                return self._stop(given, code, at)

    def _find(self) -> tuple[Place, ...]:
        """Where everything is that native code works on, in the order of its arguments."""
        pixels, atlas = self.pixels, self._atlas
        address = place_of(pixels)[0]
        self._frame[SHIFT] = atlas.shift
        self._frame[ALIGN] = (address & 63) >> 2
        kept: list[Pixels] = [self._frame, self._dirty, _WIDTHS, _SIZES, atlas.slots, atlas.words]
        found = [place_of(array) for array in (*kept, self._faults)]
        self._places = ((address, pixels.size // 4), *found)
        return self._places

    def _executor(self, given: Pixels, at: int) -> tuple[int, Native]:
        """Families, and the code for them: what a stream begins with; all once there is more."""
        kinds = Canvas._kinds
        if kinds is None:
            kinds = Canvas._kinds = stream.families(given, at)
        if self._execute is None or self._execute[:2] != (kinds, self._checked):
            code = compile_native(stream.execute, checked=self._checked, kinds=kinds)
            self._execute = kinds, self._checked, code
        return kinds, self._execute[2]

    def _stop(self, given: Pixels, code: int, at: int) -> Stop:
        size = 0 if code == stream.BROKEN else int(_SIZES[code])
        end = at + size
        if size == 0 and code != stream.BROKEN:
            end = compile_native(stream.ending, checked=self._checked)(given, code, at)
        if end <= at:
            raise _malformed(given, at, 0)
        return Stop(code, at, end)

    def _image(self, at: int, id: int, x: int, y: int, w: int, h: int) -> None:
        image, scratch = self._images.get(id), self._scratch
        if image is None:
            self._collect()
            self._told.append(Fault(stream.IMAGE_BLIT, at, id))
            return
        if scratch is None or scratch.width < self.width:
            scratch = self._scratch = Scratch(self.width)
        pixels, frame, dirty = (self._places or self._find())[:3]
        draw_image(
            image, scratch, (pixels, frame, dirty), self.width, (x, y, w, h), at + _IMAGE_SIZE,
            nearest=self.nearest, checked=self._checked,
        )  # fmt: skip

    def _collect(self) -> None:
        count = int(self._faults[0])
        for n in range(count):
            opcode, offset, id = self._faults[1 + 3 * n : 4 + 3 * n].tolist()
            self._told.append(Fault(opcode, offset, id & (2**64 - 1)))
        self._faults[0] = 0

    def take_faults(self) -> list[Fault]:
        """Commands that named no image or sprite since the last call, in order."""
        self._collect()
        told, self._told = self._told, []
        return told

    # pixels -----------------------------------------------------------------------------------
    def take_dirty(self) -> list[tuple[int, int, int, int]]:
        """Rectangles (x, y, w, h) that hold all that changed since the last call."""
        found = []
        height = self.height
        for band, (x0, x1) in enumerate(self._dirty.reshape(-1, 2).tolist()):
            if x0 < x1:
                y = band << BAND
                found.append((x0, y, x1 - x0, min(1 << BAND, height - y)))
        self._dirty[::2] = NOWHERE
        self._dirty[1::2] = 0
        return found

    def touch(self) -> None:
        """Says that all pixels changed."""
        self._dirty[::2] = 0
        self._dirty[1::2] = self.width

    def swap(self, pixels: Pixels) -> Pixels:
        """Draws on other pixels of the same size from now on, and gives the old ones."""
        old = self.pixels
        if not isinstance(pixels, np.ndarray) or (pixels.shape, pixels.dtype) != (
            old.shape,
            old.dtype,
        ):
            came = getattr(pixels, "shape", type(pixels).__name__)
            raise CommandError(f"swap: an array of uint8 {old.shape} is wanted, {came} came.")
        if not pixels.flags.c_contiguous or not pixels.flags.writeable:
            raise CommandError("swap: the array must be contiguous and writable. Copy it first.")
        self._pixels, self._places = pixels, ()
        return old

    def resize(self, width: int, height: int) -> None:
        """Another size: what fits is kept, the rest transparent, the clip lifted, all changed."""
        old = self.pixels
        made = blank_pixels(
            checked_size("resize", "width", width), checked_size("resize", "height", height)
        )
        h, w = min(old.shape[0], height), min(old.shape[1], width)
        made[:h, :w] = old[:h, :w]
        self._pixels = made
        self._start()
        self.touch()

    # images and sprites -----------------------------------------------------------------------
    def load_image(self, id: int, pixels: Any, w: int, h: int) -> None:
        """Keeps a copy of RGBA pixels under an id, to be drawn at any size."""
        words = _words("load_image", id, pixels, w, h)
        try:
            self._images[id] = make_image(words, w, h)
        except MemoryError:
            raise BufferTooLarge(
                f"load_image: there is no memory for {w} x {h} pixels. Remove other images."
            ) from None

    def remove_image(self, id: int) -> None:
        """Forgets an image; no error if there is none."""
        self._images.pop(id, None)

    def load_sprite(self, id: int, pixels: Any, w: int, h: int) -> None:
        """Copies RGBA pixels into the atlas under an id."""
        self._atlas.put(id, _words("load_sprite", id, pixels, w, h), w, h)
        self._places = ()

    def remove_sprite(self, id: int) -> None:
        """Forgets a sprite; no error if there is none."""
        self._atlas.remove(id)
        self._places = ()

    @property
    def image_count(self) -> int:
        """How many images there are."""
        return len(self._images)

    @property
    def sprite_count(self) -> int:
        """How many sprites there are."""
        return len(self._atlas)

    @property
    def atlas_bytes(self) -> int:
        """Bytes of the sprites' arena."""
        return self._atlas.nbytes

    def close(self) -> None:
        """Lets go of all memory; the canvas cannot be used any more."""
        self._pixels, self._places = None, ()
        self._images.clear()
        self._atlas.clear()
        self._scratch = self._bands = None


def blank_pixels(width: int, height: int) -> Pixels:
    """Return transparent pixels (height, width, 4), aligned to 64 bytes."""
    size = width * height * 4
    try:
        whole = np.zeros(size + 64, np.uint8)
    except MemoryError:
        raise BufferTooLarge(
            f"Canvas: cannot allocate {width} x {height} pixels, {size} bytes."
        ) from None
    skip = -whole.ctypes.data % 64
    return whole[skip : skip + size].reshape(height, width, 4)


def _bytes(call: str, data: Any) -> Pixels:
    try:
        return np.frombuffer(data, np.uint8)
    except (TypeError, ValueError, BufferError):
        if isinstance(data, (bytes, bytearray, memoryview)) and not len(data):
            return np.zeros(0, np.uint8)
        raise CommandError(
            f"{call}: contiguous bytes are wanted, {type(data).__name__} came."
        ) from None


def _words(call: str, id: int, pixels: Any, w: int, h: int) -> Pixels:
    for name, value, bits in (("id", id, 64), ("w", w, 32), ("h", h, 32)):
        if not isinstance(value, int) or not 0 <= value < 1 << bits:
            raise CommandError(f"{call}: {name} is within 0..2^{bits} - 1, {value!r} came.")
    data = _bytes(call, pixels)
    if data.size != w * h * 4:
        raise CommandError(
            f"{call}: {w} x {h} pixels of four bytes (RGBA) are wanted, {data.size} bytes came."
        )
    if data.size and max(w, h) > MAX_SOURCE:
        raise CommandError(f"{call}: {w} x {h} is too large, {MAX_SOURCE} is the longest side.")
    return data.view(np.uint32) if place_of(data)[0] % 4 == 0 else data.copy().view(np.uint32)


def _malformed(given: Pixels, at: int, depth: int) -> ProtocolError:
    """The error for a command that native code refused, in the words of the protocol."""
    decoder = Decoder(given.tobytes(), at)
    try:
        decoder.command(depth)
    except ProtocolError as error:
        return error
    return ProtocolError("malformed", at, int(given[at]))
