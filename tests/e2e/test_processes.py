"""Objects in other processes: pickled to spawned ones, and shared with forked ones.

One child of each kind makes all checks: processes are slow to start.
"""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys

import pytest

import dala
from tests.support import processes

pytest.importorskip("av")
pytest.importorskip("onnxruntime")

#: Objects that can be pickled: their values.
VALUES = (
    "buffer", "expression", "frame", "kernel", "text kernel", "built-in", "command", "cube",
    "style", "error", "device",
)  # fmt: skip

#: Why the others cannot, and what to do instead.
REFUSED = {
    "pipeline": "Pipeline: Pass the values, and build the pipeline there.",
    "stream": "Stream: Make another one there.",
    "future": "Future: Pass its result().",
    "texture": "Texture: Pass the pixels, texture.array.",
    "textures": "TexturePool: Pass the pixels, texture.array.",
    "frames": "FramePipeline: Pass the filters, and make one there.",
    "scene": "Scene: Save it with scene.save(path), and use load_scene(path) there.",
    "node": "ImageNode: Save the scene with scene.save(path).",
    "model": "Model: Pass its path, and use load_model(path) there.",
    "reader": "Reader: Pass the path, and open it there.",
    "writer": "Writer: Pass frames to the process that writes.",
    "video scene": "Scene: Save it with scene.save(path), and use load_scene(path) there.",
}

#: What a forked child cannot use.
PARENTS = {
    "surface": "FreedError: get_pixels: the surface was created before this process was forked, "
    "and belongs to the parent. Make a new one with create_surface(...).",
    "reader": "FreedError: video: '{folder}/clip.mp4' was opened before this process was forked, "
    "and belongs to the parent. Open it again: video.open(...).",
    "writer": "FreedError: video.write: '{folder}/written.mp4' was opened before this process was "
    "forked, and belongs to the parent. Write to another file here.",
    "video scene": "FreedError: open_source: the stream was opened before this process was "
    "forked, and belongs to the parent. Open it again here.",
}

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forks, in 3.12


@pytest.fixture
def objects(tmp_path):
    before = os.environ.get("DALA_DEVICE")
    made = processes.make(tmp_path)
    yield made
    for each in reversed(made.values()):
        if hasattr(each, "close") and not isinstance(each, dala.DalaError):
            each.abandon() if hasattr(each, "abandon") else each.close()
    dala.use(before or "auto")


def test_every_use_is_tested(objects):
    assert set(objects) == set(processes.USES) == {*VALUES, *REFUSED, "surface"}


def test_pickled_values(objects):
    for kind in VALUES:
        made = pickle.loads(pickle.dumps(objects[kind]))
        assert processes.attempt(kind, made) == processes.attempt(kind, objects[kind]), kind
    for kind, reason in REFUSED.items():
        name, advice = reason.split(": ", 1)
        with pytest.raises(dala.UnpicklableError) as caught:
            pickle.dumps(objects[kind])
        assert str(caught.value) == (
            f"pickle: {name} objects belong to their process, and cannot be copied or pickled. "
            f"{advice}"
        )
    with pytest.raises(dala.DalaError, match=r"cannot be copied or pickled. Use get_pixels\(\)"):
        pickle.dumps(objects["surface"])


def in_child(method, made):
    """Return the results of all uses in a process of a kind."""
    context = multiprocessing.get_context(method)
    receive, send = context.Pipe(duplex=False)
    child = context.Process(target=processes.send_all, args=(send, made))
    child.start()
    send.close()
    try:
        assert receive.poll(120), "the child hangs"
        found = receive.recv()
        child.join(60)
        assert child.exitcode == 0
        return found
    finally:
        child.kill()
        child.join()


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_interpreter(objects, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"there is no {method}")
    values = {kind: objects[kind] for kind in VALUES}
    assert in_child(method, values) == processes.attempt_all(values)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_forked_child(objects, tmp_path):
    objects["writer"].write(processes.np.zeros((16, 16, 3), "u1"))
    found = in_child("fork", objects)
    for kind, text in PARENTS.items():
        assert found.pop(kind) == text.format(folder=tmp_path), kind
    shared = {kind: objects[kind] for kind in found}
    assert found == processes.attempt_all(shared)
    # The parent's own go on.
    mine = {kind: objects[kind] for kind in PARENTS}
    assert processes.attempt_all(mine) == {
        "surface": b"\xff\0\0\xff" * 16,
        "reader": processes.attempt("reader", dala.media.video.open(tmp_path / "clip.mp4"))[1:],
        "writer": None,
        "video scene": processes.total(objects["video scene"].render(time=0.4)),
    }
    objects["writer"].close()
    with dala.media.video.open(tmp_path / "written.mp4") as written:
        assert len(list(written)) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_child_that_exits_or_closes_leaves_the_parents_files(objects, tmp_path):
    """A child may also end as a program does: finalizers and exit functions run in it."""
    if "ray" in sys.modules:  # of an earlier test; its own exit functions crash in children
        test = f"{__file__}::test_child_that_exits_or_closes_leaves_the_parents_files"
        alone = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:benchmark",
            test,
        ]
        done = subprocess.run(alone, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return
    objects["writer"].write(processes.np.zeros((16, 16, 3), "u1"))
    before = sorted(os.listdir(tmp_path))
    for close in (False, True):
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            try:
                if close:
                    for made in objects.values():
                        if hasattr(made, "close"):
                            made.close()
                objects.clear()
                import atexit
                import gc

                gc.collect()
                atexit._run_exitfuncs()
            except BaseException as error:
                sys.stderr.write(f"{error!r}\n")
                os._exit(1)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert sorted(os.listdir(tmp_path)) == before
    objects["writer"].close()
    assert (tmp_path / "written.mp4").exists()


BUSY = """
import os, signal, threading, warnings
warnings.simplefilter("ignore")
from dala.gpu import create_surface
from dala.gpu.compute import buffer, kernel

stop, started = False, threading.Barrier(3)

def compile_kernels(first):
    number = first
    while not stop:
        lines = "".join(f"    x = sin(x) * {number}.5 + {n}.25\\n" for n in range(8))
        made = kernel(f"def busy{number}(x):\\n{lines}    return x\\n")
        made(buffer([1.0, 2.0], device="cpu"))
        number += 1
        if number == first + 1:
            started.wait()

def draw():
    with create_surface(64, 64) as surface:
        started.wait()
        while not stop:
            for _ in range(50):
                surface.fill_circle(32, 32, 30, (1, 2, 3, 99))
            surface.present()

threads = [threading.Thread(target=draw), threading.Thread(target=compile_kernels, args=(1,))]
for thread in threads:
    thread.start()
started.wait()
for n in range(6):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        made = kernel(f"def child(x): return x * {n + 2}.5")
        assert made(buffer([2.0], device="cpu")).read_list() == [2 * n + 5.0]
        with create_surface(2, 2) as surface:
            surface.clear("red")
            assert surface.get_pixels() == b"\\xff\\0\\0\\xff" * 4
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop = True
for thread in threads:
    thread.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_forks_while_threads_compile_and_draw(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", BUSY],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "0\n" * 6)
