"""The notebook presenter in a real kernel; the test plays the role of the page."""

import base64
import contextlib
import importlib.util
import io
import queue
import time

import numpy as np
import pytest
from PIL import Image

import dala
from tests.gpu.presenters.screens import PATIENCE, PICTURE, over_black, picture, require

WIDE, HIGH = 60, 40


class Notebook:
    """A kernel, with the cells it runs and the messages it sends."""

    def __init__(self):
        for package in ("ipykernel", "jupyter_client"):
            require(importlib.util.find_spec(package), f"{package} is not installed")
        from jupyter_client.manager import start_new_kernel

        self.manager, self.client = start_new_kernel(
            kernel_name="python3", startup_timeout=PATIENCE
        )
        self.messages = []

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()
        self.client.context.destroy()

    def listen(self, seconds):
        """Return the next message, or None after a timeout."""
        with contextlib.suppress(queue.Empty):
            message = self.client.get_iopub_msg(timeout=seconds)
            self.messages.append(message)
            return message
        return None

    def cell(self, code):
        """Run a cell to its end; an error in it fails the test."""
        number = self.client.execute(code)
        while True:
            message = self.listen(PATIENCE)
            assert message is not None, "the kernel does not answer"
            if message["parent_header"].get("msg_id") != number:
                continue
            assert message["msg_type"] != "error", "\n".join(message["content"]["traceback"])
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return

    def until(self, look, what, seconds=PATIENCE):
        """Search the received and the following messages for a matching one."""
        end = time.monotonic() + seconds
        while not (seen := look()):
            assert time.monotonic() < end, f"{what}: not within {seconds} s"
            self.listen(0.2)
        return seen

    def of(self, kind):
        return [m for m in self.messages if m["msg_type"] == kind]

    def pictures(self, kind):
        """Return the displayed or replaced pictures as arrays, with their display ids."""
        return [
            (m["content"]["transient"].get("display_id"), decode(m["content"]["data"]["image/png"]))
            for m in self.of(kind)
            if "image/png" in m["content"]["data"]
        ]

    def say(self, comm, data):
        """Send a message of the page to a widget."""
        message = self.client.session.msg("comm_msg", {"comm_id": comm, "data": data})
        self.client.shell_channel.send(message)


def decode(data):
    raw = base64.b64decode(data) if isinstance(data, str) else bytes(data)
    return np.asarray(Image.open(io.BytesIO(raw)).convert("RGB"))


@pytest.fixture(scope="module")
def kernel():
    made = Notebook()
    try:
        made.cell(PICTURE + "import sys, time, threading, dala")
        yield made
    finally:
        made.close()


@pytest.fixture
def notebook(kernel):
    kernel.messages.clear()
    return kernel


def test_pictures_replace_each_other(notebook):
    notebook.cell(f"""
sys.modules["jupyter_rfb"] = None
s = dala.gpu.create_surface({WIDE}, {HIGH}, show="notebook")
s.set_pixels(picture({WIDE}, {HIGH}))
s.present()
s.synchronize()
""")
    notebook.until(lambda: notebook.pictures("update_display_data"), "the frame")
    ((place, first),) = notebook.pictures("display_data")
    assert not first.any()  # nothing is presented yet
    ((again, seen),) = notebook.pictures("update_display_data")
    assert again == place
    assert np.array_equal(seen, over_black(picture(WIDE, HIGH)))
    # Frames appear while a cell runs; of too many, the newest.
    notebook.cell("""
for i in range(40):
    s.clear((i, 0, 0)); s.present(); s.synchronize(); time.sleep(0.005)
p = s.presenter
s.close()
assert p.closed
assert not [t for t in threading.enumerate() if t.name == "dala-notebook"]
assert p.shown + p.renderer.dropped == 41, (p.shown, p.renderer.dropped)
""")
    updates = notebook.pictures("update_display_data")
    assert 2 <= len(updates) <= 41
    reds = [int(seen[0, 0, 0]) for _, seen in updates[1:]]
    assert reds == sorted(reds)
    assert reds[-1] == 39
    notebook.cell('del sys.modules["jupyter_rfb"]')


def test_widget_streams_frames(notebook):
    require(importlib.util.find_spec("jupyter_rfb"), "jupyter_rfb is not installed")
    notebook.cell(f"""
s = dala.gpu.create_surface({WIDE}, {HIGH}, show="notebook", title="mine")
s.set_pixels(picture({WIDE}, {HIGH}))
s.present()
s.synchronize()
""")
    (state,) = [
        m["content"]
        for m in notebook.of("comm_open")
        if "css_width" in m["content"]["data"].get("state", {})
    ]
    comm = state["comm_id"]
    (view,) = [
        m
        for m in notebook.of("display_data")
        if m["content"]["data"].get("application/vnd.jupyter.widget-view+json", {}).get("model_id")
        == comm
    ]

    def frames():
        return [
            (m["content"]["data"]["content"], bytes(m["buffers"][0]))
            for m in notebook.of("comm_msg")
            if m["content"]["comm_id"] == comm
            and m["content"]["data"].get("content", {}).get("type") == "framebufferdata"
        ]

    # The page reports that the widget is visible and its size, and confirms each frame.
    size = {"type": "resize", "width": WIDE, "height": HIGH, "ratio": 1, "pwidth": WIDE}
    size |= {"pheight": HIGH, "timestamp": 0}
    notebook.say(comm, {"method": "custom", "content": size})
    notebook.say(comm, {"method": "update", "state": {"_has_visible_views": True}})

    def lossless(wanted):
        for content, data in frames():
            feedback = {"index": content["index"], "timestamp": content["timestamp"]}
            feedback["localtime"] = content["timestamp"]
            notebook.say(comm, {"method": "update", "state": {"_frame_feedback": feedback}})
            if content["mimetype"] == "image/png" and np.array_equal(decode(data), wanted):
                return True
        return False

    notebook.until(lambda: lossless(over_black(picture(WIDE, HIGH))), "the frame")
    notebook.cell(f"s.set_pixels(picture({WIDE}, {HIGH}, 3)); s.present(); s.synchronize()")
    notebook.until(lambda: lossless(over_black(picture(WIDE, HIGH, 3))), "the next frame")
    # At the end a picture of the last frame replaces the widget.
    notebook.cell("""
s.clear("lime"); s.present(); s.synchronize()
p = s.presenter
s.close()
assert p.closed
""")
    ((place, last),) = notebook.pictures("update_display_data")
    assert place == view["content"]["transient"]["display_id"]
    assert np.array_equal(last, np.full((HIGH, WIDE, 3), (0, 255, 0), np.uint8))
    notebook.until(
        lambda: any(m["content"]["comm_id"] == comm for m in notebook.of("comm_close")),
        "the widget's end",
    )


def test_input_of_the_widget(notebook):
    require(importlib.util.find_spec("jupyter_rfb"), "jupyter_rfb is not installed")
    notebook.cell(f"""
import asyncio
s = dala.gpu.create_surface({WIDE}, {HIGH}, show="notebook")
seen = []
@s.on("*")
def note(event):
    seen.append({{k: v for k, v in event.items() if k != "time_stamp"}})
""")
    (comm,) = [
        m["content"]["comm_id"]
        for m in notebook.of("comm_open")
        if "css_width" in m["content"]["data"].get("state", {})
    ]

    def send(kind, **fields):
        content = {"type": kind, "timestamp": 1.5, **fields}
        notebook.say(comm, {"method": "custom", "content": content})

    send("resize", width=2 * WIDE, height=2 * HIGH, ratio=2, pwidth=4 * WIDE, pheight=4 * HIGH)
    place = {"x": 20, "y": 30, "buttons": [1], "modifiers": ["Shift"]}
    place |= {"ntouches": 1, "touches": {"7": {"x": 20, "y": 30, "pressure": 1}}}
    send("pointer_down", button=1, **place)
    send("key_down", key="A", modifiers=["Shift"])
    send("pointer_move", **{**place, "x": "20"})  # refused, as what follows
    send("pointer_move", **{**place, "buttons": 7})
    send("unknown")
    send("focus_out")
    notebook.cell("""
end = time.monotonic() + 60
while len(seen) < 5 and time.monotonic() < end:
    await asyncio.sleep(0.01)
wanted = ["resize", "pointer_down", "key_down", "char", "blur"]
assert [e["event_type"] for e in seen] == wanted, seen
assert (seen[1]["x"], seen[1]["y"], seen[1]["buttons"]) == (10, 15, (1,)), seen[1]
assert seen[1]["touches"] == {7: {"x": 10, "y": 15, "pressure": 1}}, seen[1]
assert seen[3]["data"] == "A"
assert s.scale == 2
assert s.keys == set()
assert [e["event_type"] for e in s.events()] == [e["event_type"] for e in seen]
s.title, s.cursor = "mine", "crosshair"
await asyncio.sleep(0)
assert s.presenter._canvas.cursor == "crosshair"
""")
    # Frames are drawn while no cell runs.
    notebook.cell("""
times = []
def draw(s, dt):
    times.append(dt)
    if len(times) == 5:
        s.post_event({"event_type": "key_down", "key": "x"})
s.run(draw, fps=100)
""")
    notebook.cell("""
while len(times) < 8:
    await asyncio.sleep(0.01)
assert seen[-1]["key"] == "x"
s.stop()
await asyncio.sleep(0.1)
count = len(times)
await asyncio.sleep(0.1)
assert len(times) == count
s.close()
""")


def test_waiting_without_a_timeout_is_refused(notebook):
    notebook.cell("""
with dala.gpu.create_surface(4, 4, show="notebook") as s:
    try:
        dala.gpu.wait_closed(s)
    except dala.errors.CommandError as error:
        assert "timeout must be given in a notebook" in str(error)
    else:
        raise AssertionError("it waited")
    assert dala.gpu.wait_closed(s, 0.1) is False
""")


def test_error_outside_a_notebook():
    with pytest.raises(dala.errors.DeviceUnavailable, match=r"pip install jupyterlab jupyter_rfb"):
        dala.gpu.create_surface(8, 8, show="notebook")
