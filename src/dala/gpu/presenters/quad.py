"""Drawing of a frame into a window: one texture, one triangle, aspect kept."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from dala.errors import DeviceUnavailable
from dala.typing import NDArray

if TYPE_CHECKING:
    import wgpu


class Quad:
    """The GPU objects of one window; used on one thread."""

    def __init__(self, context: wgpu.GPUCanvasContext, nearest: bool) -> None:
        import wgpu

        self._usage = wgpu.TextureUsage.TEXTURE_BINDING | wgpu.TextureUsage.COPY_DST
        self._context = context
        adapter = _adapter(context)
        self._device = adapter.request_device_sync(label="dala window")
        self._largest = int(self._device.limits["max-texture-dimension-2d"])
        # Pixels are sRGB bytes already, so the window must not convert them.
        preferred = self._context.get_preferred_format(adapter)
        self._context.configure(device=self._device, format=preferred.removesuffix("-srgb"))
        code = files(__package__).joinpath("quad.wgsl").read_text(encoding="utf-8")
        module = self._device.create_shader_module(code=code)
        self._pipeline = self._device.create_render_pipeline(
            layout="auto",
            vertex={"module": module, "entry_point": "corner"},
            fragment={
                "module": module,
                "entry_point": "pixel",
                "targets": [{"format": preferred.removesuffix("-srgb")}],
            },
        )
        how = "nearest" if nearest else "linear"
        self._sampler = self._device.create_sampler(mag_filter=how, min_filter=how)
        self._texture: wgpu.GPUTexture | None = None
        self._group: wgpu.GPUBindGroup | None = None

    def upload(self, frame: NDArray) -> None:
        """Upload a frame. The array may change after this returns."""
        step = self._step(frame.shape)
        if step > 1:
            frame = np.ascontiguousarray(frame[::step, ::step])
        height, width = frame.shape[:2]
        self._fit(width, height)
        self._device.queue.write_texture(
            {"texture": self._texture},
            frame,
            {"bytes_per_row": width * 4, "rows_per_image": height},
            (width, height, 1),
        )

    def prepare(self, shape: tuple[int, ...]) -> None:
        """Create the texture for a frame of this shape ahead of the upload."""
        step = self._step(shape)
        self._fit(-(-shape[1] // step), -(-shape[0] // step))

    def _step(self, shape: tuple[int, ...]) -> int:
        """Return the subsampling step for frames larger than the largest texture."""
        return -(-max(shape[:2]) // self._largest)

    def _fit(self, width: int, height: int) -> None:
        if self._texture is None or self._texture.size[:2] != (width, height):
            self._texture = self._device.create_texture(
                size=(width, height, 1), format="rgba8unorm", usage=self._usage
            )
            entries = [
                {"binding": 0, "resource": self._texture.create_view()},
                {"binding": 1, "resource": self._sampler},
            ]
            self._group = self._device.create_bind_group(
                layout=self._pipeline.get_bind_group_layout(0), entries=entries
            )

    def target(self, size: tuple[int, int]) -> wgpu.GPUTexture:
        """Return the next texture of a window of this size; with vsync this waits for the screen.

        Raises ``wgpu.DrawCancelled`` while the window accepts no frame.
        """
        if self._context.physical_size != size:
            self._context.set_physical_size(*size)
        return self._context.get_current_texture()

    def draw(self, target: wgpu.GPUTexture) -> None:
        """Draw and show the frame centered in the window, as large as fits, on black."""
        encoder = self._device.create_command_encoder()
        attachment = {
            "view": target.create_view(),
            "clear_value": (0.0, 0.0, 0.0, 1.0),
            "load_op": "clear",
            "store_op": "store",
        }
        render = encoder.begin_render_pass(color_attachments=[attachment])
        if self._texture is not None and self._group is not None:
            x, y, w, h = fit_rect(self._texture.size[:2], target.size[:2])
            render.set_viewport(x, y, w, h, 0.0, 1.0)
            render.set_pipeline(self._pipeline)
            render.set_bind_group(0, self._group)
            render.draw(3)
        render.end()
        self._device.queue.submit([encoder.finish()])
        self._context.present()

    def close(self) -> None:
        """Release all GPU objects, the device last."""
        self._context.unconfigure()
        self._context = self._texture = self._group = self._pipeline = self._sampler = None
        self._device.destroy()


def fit_rect(frame: tuple[int, int], window: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return the rectangle (x, y, width, height) of a frame in a window, aspect kept.

    >>> fit_rect((320, 200), (640, 400)), fit_rect((100, 100), (300, 200))
    ((0, 0, 640, 400), (50, 0, 200, 200))
    """
    (fw, fh), (ww, wh) = frame, window
    if ww * fh <= wh * fw:
        w, h = ww, (2 * ww * fh + fw) // (2 * fw)
    else:
        w, h = (2 * wh * fw + fh) // (2 * fh), wh
    w, h = max(w, 1), max(h, 1)
    return (ww - w) // 2, (wh - h) // 2, w, h


def _adapter(context: wgpu.GPUCanvasContext) -> wgpu.GPUAdapter:
    import wgpu

    try:
        adapter = wgpu.gpu.request_adapter_sync(canvas=context, power_preference="high-performance")
    except Exception as error:
        adapter, why = None, f" ({error})"
    else:
        why = ""
    if adapter is None:
        raise DeviceUnavailable(
            f"create_surface: show='window' found no graphics driver for windows{why}. "
            "`dala doctor` reports what is missing; show='browser' needs none."
        )
    return adapter
