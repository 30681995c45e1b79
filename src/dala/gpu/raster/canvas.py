"""The canvas: pixels, clip, images and sprites, and the execution of commands on them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from dala.errors import BufferTooLarge, CommandError, DalaError, FreedError, ProtocolError
from dala.gpu import protocol
from dala.gpu.checks import checked_size
from dala.gpu.compute.engines.cpu.memory import ArraySpan, span_of
from dala.gpu.compute.engines.cpu.native import Native, compile_native
from dala.gpu.protocol import BytesLike, DrawCommand
from dala.gpu.raster import stream
from dala.gpu.raster.atlas import Atlas
from dala.gpu.raster.bands import OFFSET, STOP_CODE, Bands, worth_banding
from dala.gpu.raster.frame import BAND_SHIFT, UNTOUCHED, FrameRecord
from dala.gpu.raster.images import Scratch, StoredImage, make_image
from dala.gpu.raster.rounds import half_widths
from dala.gpu.vector.layers import MAX_LAYERS, Layer, blend, filters_of, finished
from dala.gpu.vector.painter import NO_CLIP, Painter
from dala.typing import NDArray

#: The largest width and height of an image or a sprite.
MAX_SOURCE: Final = 1 << 24

Pixels = NDArray

_IMAGE: Final = struct.Struct("<QiiII")
_IMAGE_SIZE: Final = 1 + _IMAGE.size
_SIZES: Final = span_of(stream.SIZES)
_WIDTHS: Final = half_widths()
_NOTHING: Final[ArraySpan] = (0, 0)
_VECTOR: Final = frozenset(row.opcode for row in protocol.COMMANDS if row.vector)


class Stop(NamedTuple):
    """A command that the caller executes; its bytes are from ``offset`` to ``end``."""

    opcode: int
    offset: int
    end: int


class Fault(NamedTuple):
    """A command that drew nothing, because no image or sprite has its id."""

    opcode: int
    offset: int
    id: int

    @property
    def error(self) -> DalaError:
        """The error for the user."""
        name = protocol.BY_OPCODE[self.opcode].function
        thing = "sprite" if self.opcode == stream.BLIT else "image"
        return CommandError(
            f"{name}: there is no {thing} {self.id}. Load it with load_{thing} first.",
            call=name,
            argument="id",
            expected=f"the id of a loaded {thing}",
            got=self.id,
        )


class FailedCommand(NamedTuple):
    """A command that failed, and its error."""

    offset: int
    error: DalaError


class Canvas:
    """A framebuffer that commands draw on. It belongs to one thread at a time."""

    #: Scale images to the nearest pixel instead of bilinearly.
    nearest: bool = False
    #: Use native code that checks every array access; for tests.
    _checked: bool = False
    #: The families of commands that are compiled, shared by all canvases; None before the first.
    _families: int | None = None

    def __init__(self, width: int, height: int) -> None:
        self._pixels: Pixels | None = blank_pixels(
            checked_size("Canvas", "width", width), checked_size("Canvas", "height", height)
        )
        self._frame = np.zeros(FrameRecord.size, np.int64)
        self._damage = np.zeros(0, np.int32)
        self._faults = np.zeros(1 + stream.FAULT_WORDS * stream.MAX_FAULTS, np.int64)
        self._taken_faults: list[Fault | FailedCommand] = []
        self._painter: Painter | None = None
        self._layers: list[Layer] = []
        #: Called with the bytes that are about to be allocated, and the call; may raise.
        self.hold: Callable[[int, str], None] = lambda more, call: None
        #: Called between parts of long work; may raise.
        self.check_work: Callable[[str], None] = lambda call: None
        self._atlas = Atlas()
        self._images: dict[int, StoredImage] = {}
        self._image_bytes = 0
        self._scratch: Scratch | None = None
        self._bands: Bands | None = None
        self._spans: tuple[ArraySpan, ...] = ()
        self._check: Native | None = None
        self._execute: tuple[int, bool, Native] | None = None
        self._reset()

    def _reset(self) -> None:
        """Reset the clip and the damage."""
        width, height = self.width, self.height
        FrameRecord.write(self._frame, width=width, x0=0, y0=0, x1=width, y1=height)
        self._damage = np.zeros(2 * (((height - 1) >> BAND_SHIFT) + 1), np.int32)
        self._damage[::2] = UNTOUCHED
        self._spans = ()
        self._bands = None

    @property
    def pixels(self) -> Pixels:
        """The framebuffer, an array (height, width, 4) of uint8."""
        if self._pixels is None:
            raise FreedError("Canvas: the canvas was closed. Make a new one.")
        return self._pixels

    @property
    def width(self) -> int:
        """The width in pixels."""
        return int(self.pixels.shape[1])

    @property
    def height(self) -> int:
        """The height in pixels."""
        return int(self.pixels.shape[0])

    # commands ---------------------------------------------------------------------------------
    def check(self, data: BytesLike) -> None:
        """Raise ProtocolError if command bytes are malformed. Safe on any thread."""
        buffer = _bytes("check", data)
        if buffer.size == 0:
            return
        if self._check is None or self._check.checked != self._checked:
            self._check = compile_native(stream.check, checked=self._checked)
        at, depth = self._check(span_of(buffer), _SIZES)
        if at >= 0:
            raise _malformed(buffer, at, depth)

    def run(self, data: BytesLike, at: int = 0) -> Stop | None:
        """Execute checked commands, from a byte on, up to the first that does not draw."""
        buffer = _bytes("run", data)
        if not 0 <= at <= buffer.size:
            raise CommandError.invalid("Canvas.run", "at", f"an int from 0 to {buffer.size}", at)
        if at == buffer.size:
            return None
        spans, where = self._spans or self._locate_arrays(), span_of(buffer)
        first, frame = Canvas._families is None, self._frame
        families, execute = self._executor(buffer, at)
        while True:
            if buffer[at] in _VECTOR:
                at = self._draw_vector(buffer, at)
                if at == buffer.size:
                    return None
                continue
            if buffer[at] == stream.IMAGE_BLIT and at + _IMAGE_SIZE <= buffer.size:
                self._draw_image(at, *_IMAGE.unpack_from(buffer, at + 1))
                at += _IMAGE_SIZE
                if at == buffer.size:
                    return None
                continue
            if not first and worth_banding(buffer, at, self.pixels.size):
                if self._bands is None:
                    self._bands = Bands(self.width, self.height)
                self._bands.draw(execute, where, spans, frame, at, families=families)
            else:
                execute(where, *spans, _NOTHING, 0, at, buffer.size)
            code, at = int(frame[STOP_CODE]), int(frame[OFFSET])
            if code == stream.END:
                return None
            if code == stream.FULL:
                self._collect_faults()
            elif code in stream.FAMILIES:
                Canvas._families = stream.ALL
                families, execute = self._executor(buffer, at)
            elif code != stream.IMAGE_BLIT and code not in _VECTOR:
                return self._stop(buffer, code, at)

    @property
    def painter(self) -> Painter:
        """The vector drawing of the canvas, made when it is first used."""
        if self._painter is None or self._painter.checked != self._checked:
            self._painter = Painter(
                self._checked, lambda *given: self.hold(*given), lambda call: self.check_work(call)
            )
        return self._painter

    def store(self, command: DrawCommand) -> None:
        """Store a path, paint or mask that a command has."""
        self.painter.store(command, self._images)

    def _draw_vector(self, buffer: Pixels, at: int) -> int:
        """Execute vector commands from a byte on; return the end of the last one."""
        spans = self._spans or self._locate_arrays()
        start = at
        at, done, error = self.painter.run(
            buffer, at, spans, self._frame, (self.width, self.height)
        )
        if error is not None:
            self._taken_faults.append(FailedCommand(at, error))
        if done or at == start:
            at = self._stop(buffer, int(buffer[at]), at).end
        return at

    def begin_layer(self, opacity: float, mode: int, text: str) -> None:
        """Draw on blank pixels until ``end_layer`` blends them; ``text`` has their filters."""
        filters = filters_of(text)
        if len(self._layers) >= MAX_LAYERS:
            raise CommandError(f"layer: more than {MAX_LAYERS} layers are open.", call="layer")
        self.hold(frame_bytes(self.width, self.height), "layer")
        pixels, painter = blank_pixels(self.width, self.height), self.painter
        bounds, damage = tuple(self._frame[1:5].tolist()), self._damage.copy()
        self._layers.append(Layer(pixels, damage, painter.clip, bounds, opacity, mode, filters))
        self._frame[1:5] = 0, 0, self.width, self.height
        painter.clip, self._spans = NO_CLIP, ()
        self.take_damage()

    def end_layer(self) -> None:
        """Blend the pixels of a layer, after its filters, with those below."""
        if not self._layers:
            raise CommandError("layer: no layer is open.", call="layer")
        layer = self._layers.pop()
        drawn, painter = self.take_damage(), self.painter
        self._damage[:] = layer.damage
        painter.clip, self._spans = layer.clip, ()
        self._frame[1:5] = left, top, right, bottom = layer.bounds
        if not layer.filters:
            left = max(left, min((x for x, _, _, _ in drawn), default=right))
            right = min(right, max((x + w for x, _, w, _ in drawn), default=left))
            top = max(top, min((y for _, y, _, _ in drawn), default=bottom))
            bottom = min(bottom, max((y + h for _, y, _, h in drawn), default=top))
        try:
            if drawn and left < right and top < bottom:
                target, source = self._locate_arrays()[0], finished(layer)
                bounds, clip = (left, top, right, bottom), span_of(layer.clip)
                blend(
                    target, source, clip, self.width, bounds, layer.opacity, layer.mode,
                    checked=self._checked,
                )  # fmt: skip
                bands = self._damage.reshape(-1, 2)[top >> BAND_SHIFT : -(-bottom >> BAND_SHIFT)]
                bands[:, 0] = np.minimum(bands[:, 0], left)
                bands[:, 1] = np.maximum(bands[:, 1], right)
        finally:
            del layer
            self.hold(0, "layer")

    @property
    def in_layer(self) -> bool:
        """Whether a layer is open."""
        return bool(self._layers)

    def _locate_arrays(self) -> tuple[ArraySpan, ...]:
        """Return address and length of the arrays that native code uses, in argument order."""
        pixels, atlas = self._layers[-1].pixels if self._layers else self.pixels, self._atlas
        FrameRecord.write(self._frame, sprite_shift=atlas.shift)
        own = span_of(self._frame), span_of(self._damage), span_of(_WIDTHS), _SIZES
        sprites = span_of(atlas.slots), span_of(atlas.words), span_of(self._faults)
        self._spans = ((span_of(pixels)[0], pixels.size // 4), *own, *sprites)
        return self._spans

    def _executor(self, buffer: Pixels, at: int) -> tuple[int, Native]:
        """Return the families in use and the code for them: first those of a stream, later all."""
        families = Canvas._families
        if families is None:
            families = Canvas._families = stream.families_of(buffer, at)
        if self._execute is None or self._execute[:2] != (families, self._checked):
            code = compile_native(stream.execute, checked=self._checked, families=families)
            self._execute = families, self._checked, code
        return families, self._execute[2]

    def _stop(self, buffer: Pixels, code: int, at: int) -> Stop:
        size = 0 if code == stream.BROKEN else int(stream.SIZES[code])
        end = at + size
        if size == 0 and code != stream.BROKEN:
            end = compile_native(stream.command_end, checked=self._checked)(buffer, code, at)
        if end <= at:
            raise _malformed(buffer, at, 0)
        return Stop(code, at, end)

    def _draw_image(self, at: int, id: int, x: int, y: int, w: int, h: int) -> None:
        image, scratch = self._images.get(id), self._scratch
        if image is None:
            self._collect_faults()
            self._taken_faults.append(Fault(stream.IMAGE_BLIT, at, id))
            return
        if scratch is None or scratch.width < self.width or scratch.checked != self._checked:
            scratch = self._scratch = Scratch(self.width, self._checked)
        target = (self._spans or self._locate_arrays())[:3]
        scratch.draw(image, target, self.width, (x, y, w, h), nearest=self.nearest)

    def _collect_faults(self) -> None:
        count = int(self._faults[0])
        for n in range(count):
            opcode, offset, id = self._faults[1 + 3 * n : 4 + 3 * n].tolist()
            self._taken_faults.append(Fault(opcode, offset, id & (2**64 - 1)))
        self._faults[0] = 0

    def take_faults(self) -> list[Fault | FailedCommand]:
        """Return and forget the commands that named an unknown image or sprite, in order."""
        self._collect_faults()
        taken, self._taken_faults = self._taken_faults, []
        return taken

    # pixels -----------------------------------------------------------------------------------
    def take_damage(self) -> list[tuple[int, int, int, int]]:
        """Return and reset the damage: rectangles (x, y, w, h) that contain all changed pixels."""
        found = []
        height = self.height
        for band, (x0, x1) in enumerate(self._damage.reshape(-1, 2).tolist()):
            if x0 < x1:
                y = band << BAND_SHIFT
                found.append((x0, y, x1 - x0, min(1 << BAND_SHIFT, height - y)))
        self._damage[::2] = UNTOUCHED
        self._damage[1::2] = 0
        return found

    def damage_all(self) -> None:
        """Mark all pixels as changed."""
        for damage in (self._damage, *(layer.damage for layer in self._layers)):
            damage[::2] = 0
            damage[1::2] = self.width

    def swap(self, pixels: Pixels) -> Pixels:
        """Draw on other pixels of the same size from now on. Return the previous ones."""
        old = self.pixels
        if not isinstance(pixels, np.ndarray) or (pixels.shape, pixels.dtype) != (
            old.shape,
            old.dtype,
        ):
            raise CommandError.invalid(
                "Canvas.swap", "pixels", f"an array of uint8 of shape {old.shape}", pixels
            )
        if not pixels.flags.c_contiguous or not pixels.flags.writeable:
            raise CommandError(
                "Canvas.swap: pixels must be contiguous and writable. Copy the array."
            )
        self._pixels, self._spans = pixels, ()
        return old

    def resize(self, width: int, height: int) -> None:
        """Change the size; keeps the pixels that fit and removes the clip."""
        old = self.pixels
        made = blank_pixels(
            checked_size("resize", "width", width), checked_size("resize", "height", height)
        )
        h, w = min(old.shape[0], height), min(old.shape[1], width)
        made[:h, :w] = old[:h, :w]
        self._pixels = made
        self._layers.clear()
        self._reset()
        self.damage_all()
        if self._painter is not None:
            self._painter.reset()

    # images and sprites -----------------------------------------------------------------------
    def load_image(self, id: int, pixels: BytesLike, w: int, h: int) -> None:
        """Store a copy of RGBA pixels as an image, to be drawn at any size."""
        words = _words("load_image", id, pixels, w, h)
        try:
            image = make_image(words, w, h)
        except MemoryError:
            raise BufferTooLarge(
                f"load_image: cannot allocate {w} x {h} pixels. Remove other images."
            ) from None
        self.remove_image(id)
        self._images[id] = image
        self._image_bytes += image.words.nbytes

    def remove_image(self, id: int) -> None:
        """Remove an image; an unknown id is ignored."""
        removed = self._images.pop(id, None)
        if removed is not None:
            self._image_bytes -= removed.words.nbytes

    def load_sprite(self, id: int, pixels: BytesLike, w: int, h: int) -> None:
        """Store a copy of RGBA pixels in the atlas."""
        self._atlas.put(id, _words("load_sprite", id, pixels, w, h), w, h)
        self._spans = ()

    def remove_sprite(self, id: int) -> None:
        """Remove a sprite; an unknown id is ignored."""
        self._atlas.remove(id)
        self._spans = ()

    @property
    def stored_bytes(self) -> int:
        """The bytes of all images, and of the sprite atlas."""
        painter = 0 if self._painter is None else self._painter.nbytes
        layers = sum(layer.pixels.nbytes for layer in self._layers)
        return self._image_bytes + self._atlas.nbytes + painter + layers

    def bytes_to_load(self, name: str, id: int, nbytes: int) -> int:
        """Return the bytes that load_image or load_sprite will allocate for so many of pixels."""
        if name == "load_image":
            old = self._images.get(id)
            return nbytes if old is None else max(nbytes - old.words.nbytes, 0)
        return self._atlas.bytes_to_put(id, nbytes // 4)

    def close(self) -> None:
        """Free all memory; the canvas cannot be used afterwards."""
        self._pixels, self._spans = None, ()
        self._images.clear()
        self._layers.clear()
        self._image_bytes = 0
        self._atlas.clear()
        self._scratch = self._bands = self._painter = None


def frame_bytes(width: int, height: int) -> int:
    """Return the bytes of a framebuffer.

    >>> frame_bytes(10, 10)
    400
    """
    return width * height * 4


def blank_pixels(width: int, height: int) -> Pixels:
    """Return transparent pixels (height, width, 4), aligned to 64 bytes."""
    size = frame_bytes(width, height)
    try:
        whole = np.zeros(size + 64, np.uint8)
    except MemoryError:
        raise BufferTooLarge(
            f"Canvas: cannot allocate {width} x {height} pixels, {size} bytes."
        ) from None
    skip = -whole.ctypes.data % 64
    return whole[skip : skip + size].reshape(height, width, 4)


def _bytes(call: str, data: BytesLike) -> Pixels:
    try:
        return np.frombuffer(data, np.uint8)
    except (TypeError, ValueError, BufferError):
        if isinstance(data, (bytes, bytearray, memoryview)) and not len(data):
            return np.zeros(0, np.uint8)
        raise CommandError.invalid(call, "data", "contiguous bytes", type(data)) from None


def _words(call: str, id: int, pixels: BytesLike, w: int, h: int) -> Pixels:
    for name, value, bits in (("id", id, 64), ("w", w, 32), ("h", h, 32)):
        if not isinstance(value, int) or not 0 <= value < 1 << bits:
            raise CommandError.invalid(call, name, f"an int from 0 to 2^{bits} - 1", value)
    data = _bytes(call, pixels)
    if data.size != w * h * 4:
        expected = f"{w} x {h} RGBA pixels of 4 bytes"
        raise protocol.wrong_pixels(call, "pixels", expected, f"{data.size} bytes")
    if data.size and max(w, h) > MAX_SOURCE:
        raise CommandError(f"{call}: w and h must be at most {MAX_SOURCE}, got {w} x {h}.")
    return data.view(np.uint32) if span_of(data)[0] % 4 == 0 else data.copy().view(np.uint32)


def _malformed(buffer: Pixels, at: int, depth: int) -> ProtocolError:
    """Return the error for a command that native code refused, as the decoder words it."""
    decoder = protocol.CommandDecoder(buffer.tobytes(), at)
    try:
        decoder.command(depth)
    except ProtocolError as error:
        return error
    return ProtocolError("malformed", at, int(buffer[at]))
