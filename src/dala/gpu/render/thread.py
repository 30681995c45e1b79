"""The render thread of a surface: its canvas and its two framebuffers.

A :class:`Renderer` belongs to one surface. Any thread may queue command bytes, which were checked
or made by ``encode_*``; the render thread executes them in order. The thread references the
renderer and never the surface, so that an unreferenced surface is collected and ends its thread.
Errors belong to the surface for the same reason: their tracebacks may reference it.
"""

from __future__ import annotations

import contextlib
import struct
import threading
import time
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from dala import budget, forks
from dala.errors import CommandError, DalaError
from dala.gpu import protocol
from dala.gpu.checks import checked_size
from dala.gpu.color import LAYER_BLENDS
from dala.gpu.protocol import DrawCommand
from dala.gpu.raster import Canvas, Stop
from dala.gpu.raster.canvas import blank_pixels, frame_bytes
from dala.gpu.render.worker import POLL_SECONDS, Worker
from dala.memory import Held, MemorySize, new_accounts
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.gpu.input.inbox import Inbox
    from dala.gpu.shaders.dispatch import SurfaceShaders

T = TypeVar("T")

#: The number of errors that a surface keeps.
KEPT_ERRORS: Final = 64
#: Seconds that one dispatch of a shader, and the filters of one layer, may take on surfaces that
#: were created without ``dala.limits``.
MAX_SECONDS: Final = 10.0
#: The number of results of read_pixels commands that are kept.
KEPT_READS: Final = 16
#: The bytes of results of read_pixels commands that are kept, or one frame if that is more.
KEPT_READ_BYTES: Final = 256 << 20
#: The number of presents that the frame rate is computed from.
FPS_WINDOW: Final = 120

_PRESENT: Final = protocol.OPCODES["present"]
_LOADS: Final = (protocol.OPCODES["load_sprite"], protocol.OPCODES["load_image"])
_LOAD: Final = struct.Struct("<BQII")
#: The methods of commands that do not draw. Names made at each call would fill CPython's cache of
#: attributes, which holds thousands of them by address.
_METHODS: Final = {row.name: f"_do_{row.name}" for row in protocol.COMMANDS}


class Renderer(Worker):
    """The worker of a surface, with its canvas and its front framebuffer."""

    def __init__(
        self, width: int, height: int, errors: deque[DalaError], memory: MemorySize | None = None
    ) -> None:
        super().__init__("dala-render")
        #: The memory budgets that the surface counts against.
        self.accounts = new_accounts("create_surface", "the surface", memory)
        self._held = Held("surface", self.accounts)
        self._held.resize(2 * frame_bytes(width, height), "create_surface")
        try:
            self.canvas = Canvas(width, height)
            self.canvas.hold, self.canvas.check_work = self._hold_if_open, self._check_work
            #: The presented frame; presenters may read it until the next present.
            self.front = blank_pixels(width, height)
        except BaseException:
            self.uncount()
            raise
        #: Held while the front framebuffer is read or swapped.
        self.front_lock = forks.lock()
        self.frames = 0
        self.dropped = 0
        #: Called with the renderer after each present, on the render thread.
        self.on_present: Callable[[Renderer], None] | None = None
        #: The surface's inbox of input events, or None once the surface is collected.
        self.inbox: Callable[[], Inbox | None] = lambda: None
        #: The limits of the block that the surface was created in, for its shaders.
        self.limits = budget.current()
        #: When the stream that is executed began.
        self._began = 0.0
        #: Executes compute commands; created for the first one.
        self.shaders: SurfaceShaders | None = None
        self.reads: deque[bytes] = deque(maxlen=KEPT_READS)
        self._errors = weakref.ref(errors)
        self._pending_error: deque[DalaError] = deque(maxlen=1)
        self._presented: deque[float] = deque(maxlen=FPS_WINDOW)
        try:
            self.start()
        except DalaError:
            self.uncount()
            raise

    def _work(self) -> None:
        with budget.Charging(self.accounts):  # what commands allocate counts against the surface
            super()._work()

    def sync(self, work: Callable[[], T]) -> T:
        """Call a function in turn and wait; an error of an earlier command is raised instead."""
        result, error = self.call(lambda: (work(), self._take_pending_error()))
        if error is not None:
            raise error
        return result

    def copy_pixels(self, copy: Callable[[NDArray], T]) -> T:
        """Return a copy of the pixels, in turn, made on the calling thread.

        The allocator would keep the memory of a frame for the render thread.
        """
        with self.exclusive() as canvas:
            return copy(canvas.pixels)

    @property
    def fps(self) -> float:
        """The number of frames presented per second, over the last 120."""
        times = list(self._presented)
        if len(times) < 2 or times[-1] <= times[0]:
            return 0.0
        return (len(times) - 1) / (times[-1] - times[0])

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[Canvas]:
        """Lend the canvas to the calling thread, in turn; the render thread is paused meanwhile."""
        if self.on_thread:
            yield self.canvas
            return
        if self.holds_canvas:
            self.call(lambda: None)  # raises: it would wait for itself
        hold, holding = forks.latch(), False
        try:
            paused, _ = self.pause(hold)
            while not paused.acquire(timeout=POLL_SECONDS):
                budget.check_deadline("Surface")
                if self.closed:
                    self.raise_closed("with_pixels")
            error = self._take_pending_error()
            if error is not None:
                raise error
            self._holder, holding = threading.get_ident(), True
            yield self.canvas
        finally:
            if holding:  # no call before the release: an interrupt could come with it
                self._holder = None
            hold.release()

    def limited(self) -> contextlib.AbstractContextManager[None]:
        """Limit one dispatch of a shader, or the filters of one layer, in a ``with`` block."""
        limits = self.limits
        if limits.time is None:
            limits = replace(limits, time=MAX_SECONDS)
        return budget.applied(budget.scope_of(self.token, limits))

    def _check_work(self, call: str) -> None:
        """Raise an error once the surface is closed, or its stream took longer than it may."""
        if self.token.cancelled is not None:
            raise budget.cancelled(call, self.token.cancelled)
        limit = self.limits.time
        if limit is not None and time.monotonic() > self._began + limit:
            raise budget.timed_out(call, limit)

    # memory -----------------------------------------------------------------------------------
    def _needed(self, width: int, height: int) -> int:
        """Return the bytes of the surface at a size: framebuffers, images, sprites and reads."""
        return 2 * frame_bytes(width, height) + self.canvas.stored_bytes + sum(map(len, self.reads))

    def _hold(self, more: int, call: str) -> None:
        """Count the surface's memory, and ``more`` bytes to come; raise beyond a limit."""
        canvas = self.canvas
        self._held.resize(self._needed(canvas.width, canvas.height) + more, call)

    def _hold_if_open(self, more: int, call: str) -> None:
        if not self.closed:
            self._hold(more, call)

    def uncount(self) -> None:
        """Remove the surface from the resource counts. Safe in finalizers, and to call twice."""
        self._held.release()

    def release(self) -> None:
        """Free the canvas; a presenter may still show the front framebuffer."""
        self.uncount()
        self.canvas.close()
        self.shaders = None

    # errors -----------------------------------------------------------------------------------
    def record_error(self, error: Exception, at: int | None = None) -> None:
        """List an error, and keep it for the next call that waits. Safe on any thread.

        ``at`` is the offset of the command in its stream.
        """
        if isinstance(error, DalaError):
            recorded = error.with_traceback(None)  # its frames reference bytes and pixels
            recorded.__context__ = None
        else:
            recorded = CommandError(f"Surface: a command failed: {type(error).__name__}: {error}")
            for place in traceback.extract_tb(error.__traceback__)[-1:]:
                recorded.add_note(f"In {place.name}, {place.filename}:{place.lineno}.")
            recorded.__cause__ = error.with_traceback(None)
        if at is not None:
            recorded.add_note(
                f"Only this command, at byte {at} of its stream, was skipped; those before and "
                "after it were executed."
            )
        if not self._pending_error:
            self._pending_error.append(recorded)
        errors = self._errors()
        if errors is not None:
            errors.append(recorded)

    def _take_pending_error(self) -> DalaError | None:
        try:
            return self._pending_error.popleft()
        except IndexError:
            return None

    # commands ---------------------------------------------------------------------------------
    def execute(self, data: bytes | bytearray) -> None:
        """Execute commands. One that fails is recorded, and the next ones are executed."""
        at = 0
        self._began = time.monotonic()
        while True:
            try:
                if at:
                    self._check_work("submit")
                stop = self.canvas.run(data, at)
            except Exception as error:
                self.record_error(error)
                return
            for fault in self.canvas.take_faults():
                self.record_error(fault.error, fault.offset)
            if stop is None:
                return
            try:
                self._execute_other(data, stop)
            except Exception as error:  # a driver's, for example: the thread continues
                self.record_error(error, stop.offset)
            at = stop.end

    def _execute_other(self, data: bytes | bytearray, stop: Stop) -> None:
        """Execute a command that does not draw."""
        if stop.opcode == _PRESENT:
            self._do_present()
        elif stop.opcode in _LOADS:
            _, id, w, h = _LOAD.unpack_from(data, stop.offset)
            name = protocol.BY_OPCODE[stop.opcode].name
            pixels = memoryview(data)[stop.offset + _LOAD.size : stop.end]
            more = self.canvas.bytes_to_load(name, id, len(pixels))
            if more:
                self._hold(more, name)
            try:
                getattr(self.canvas, name)(id, pixels, w, h)
            finally:
                if more:
                    self._hold(0, name)
        else:
            (command,) = protocol.decode(data[stop.offset : stop.end])
            getattr(self, _METHODS[command.name])(command)

    def _do_present(self) -> None:
        canvas = self.canvas
        if canvas.in_layer:
            raise CommandError("present: a layer is open. End it first.", call="present")
        changed = _merge_bands(canvas.take_damage())
        with self.front_lock:
            self.front = canvas.swap(self.front)
            front, back = self.front, canvas.pixels
            for x, y, w, h in changed:
                back[y : y + h, x : x + w] = front[y : y + h, x : x + w]
        self.frames += 1
        self._presented.append(time.monotonic())
        if self.on_present is not None:
            self.on_present(self)

    def _do_resize(self, command: DrawCommand) -> None:
        """Resize both framebuffers; pixels that fit are kept."""
        width = checked_size("resize", "w", command.w)
        height = checked_size("resize", "h", command.h)
        # The old framebuffers are released one after the other, once their pixels are copied.
        old_bytes = self.canvas.pixels.nbytes
        self._held.resize(self._needed(width, height) + old_bytes, "resize")
        try:
            front = blank_pixels(width, height)
            self.canvas.resize(width, height)
        except BaseException:
            self._hold(0, "resize")
            raise
        with self.front_lock:
            old, self.front = self.front, front
            h, w = min(old.shape[0], height), min(old.shape[1], width)
            front[:h, :w] = old[:h, :w]
        self._hold(0, "resize")

    def _do_remove(self, command: DrawCommand) -> None:
        getattr(self.canvas, command.name)(command.id)
        self._hold(0, command.name)

    _do_remove_sprite = _do_remove_image = _do_remove

    def _do_store(self, command: DrawCommand) -> None:
        """Store a path, paint or mask; all that it needs is counted first, roughly."""
        fields = command.fields.values()
        size = sum(len(value) for value in fields if isinstance(value, bytes)) + (1 << 14)
        self._hold(2 * size, command.name)
        try:
            self.canvas.store(command)
        finally:
            self._hold(0, command.name)

    _do_load_path = _do_load_gradient = _do_load_pattern = _do_load_mask = _do_store

    def _do_begin_layer(self, command: DrawCommand) -> None:
        mode = LAYER_BLENDS.index(command.blend)
        self.canvas.begin_layer(command.opacity, mode, command.filters)

    def _do_end_layer(self, command: DrawCommand) -> None:
        with self.limited():
            self.canvas.end_layer()

    def _do_drop(self, command: DrawCommand) -> None:
        self.canvas.painter.remove(command)
        self._hold(0, command.name)

    _do_remove_path = _do_remove_paint = _do_remove_mask = _do_drop

    def _do_read_pixels(self, command: DrawCommand) -> None:
        reads, size = self.reads, 4 * command.w * command.h
        place = command.x, command.y, command.w, command.h
        self._check_inside(*place)
        room = max(KEPT_READ_BYTES, self.canvas.pixels.nbytes)
        while reads and (len(reads) == KEPT_READS or sum(map(len, reads)) + size > room):
            reads.popleft()  # the oldest gives way, as it does for its number
        self._hold(size, "read_pixels")
        reads.append(self.read(*place))
        self._hold(0, "read_pixels")

    def take_reads(self) -> list[bytes]:
        """Return and forget the results of read_pixels commands; call it on the render thread."""
        found = list(self.reads)
        self.reads.clear()
        self._hold(0, "take_reads")
        return found

    def compute(self) -> SurfaceShaders:
        """Return the object that executes compute commands; call it on the render thread."""
        if self.shaders is None:
            from dala.gpu.shaders.dispatch import SurfaceShaders

            self.shaders = SurfaceShaders()
        return self.shaders

    def _do_compute(self, command: DrawCommand) -> None:
        self.compute()(self, command)

    _do_dispatch_compute = _do_load_shader = _do_set_uniform = _do_compute

    # pixels, on the render thread or while it is paused ---------------------------------------
    def read(self, x: int, y: int, w: int, h: int) -> bytes:
        """Return a rectangle of the back framebuffer."""
        self._check_inside(x, y, w, h)
        return self.canvas.pixels[y : y + h, x : x + w].tobytes()

    def _check_inside(self, x: int, y: int, w: int, h: int) -> None:
        canvas = self.canvas
        if x + w > canvas.width or y + h > canvas.height:
            raise CommandError(
                f"read_pixels: the rectangle at ({x}, {y}) of {w} x {h} must lie inside the "
                f"surface of {canvas.width} x {canvas.height}."
            )

    def write(self, call: str, pixels: NDArray) -> None:
        """Replace all pixels of the back framebuffer."""
        canvas = self.canvas
        check_pixels(call, pixels, canvas.width, canvas.height)
        canvas.pixels[...] = pixels.reshape(canvas.pixels.shape)
        canvas.damage_all()


def check_pixels(call: str, pixels: NDArray, width: int, height: int) -> None:
    """Raise unless an array holds the RGBA pixels of a surface of this size."""
    if pixels.size != width * height * 4 or (pixels.ndim == 3 and pixels.shape[1] != width):
        got = f"{pixels.size} bytes" if pixels.ndim == 1 else f"an array of shape {pixels.shape}"
        expected = f"{width} x {height} RGBA pixels of 4 bytes ({width * height * 4} bytes)"
        raise protocol.wrong_pixels(call, "rgba", expected, got)


Rectangle = tuple[int, int, int, int]


def _merge_bands(bands: list[Rectangle]) -> list[Rectangle]:
    """Merge adjacent bands with the same columns into one rectangle."""
    found: list[Rectangle] = []
    for x, y, w, h in bands:
        if found:
            x0, y0, w0, h0 = found[-1]
            if (x0, w0, y0 + h0) == (x, w, y):
                found[-1] = (x, y0, w, h0 + h)
                continue
        found.append((x, y, w, h))
    return found
