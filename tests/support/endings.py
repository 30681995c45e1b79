"""Children that are killed at a counted event, fill a disk, or have no standard streams.

``python -m tests.support.endings kill FOLDER COUNT KIND ..``, ``.. full FOLDER PAGES KIND ..`` and
``.. closed FOLDER WAYS COMMANDS``.
This process imports everything once; each child is a fork of it. What it finds wrong it prints, and
it ends with 1.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dala.cli import main
from dala.gpu import create_surface
from dala.gpu.compute import Cube, save_cube
from dala.media import Frame, Scene, audio, parts, video

#: Seconds after which a child hangs.
PATIENCE = 120
OLD = b"what was there before"


# what writes --------------------------------------------------------------------------------------
def command(*words: str) -> Callable[[Path], None]:
    def run(folder: Path) -> None:
        code = main([word.replace("FOLDER", str(folder)) for word in words])
        assert code == 0, code

    return run


def sound(folder: Path) -> None:
    audio.tone(440, 0.5).save(folder / "out/a.flac")


def scene_file(folder: Path) -> None:
    with Scene(16, 16) as scene:
        for n in range(5):
            scene.add_text(f"line {n}", size=8)
        scene.save(folder / "out/a.json")


def batch_job(folder: Path, kind: str, resume: bool = True) -> None:
    from dala import batch
    from tests.batch.films import job_of, run_inline
    from tests.support.inline import InlineRunner

    if kind == "videos":
        job = job_of(folder / "films", folder / "out", chunk=0.2)
    else:
        job = batch.images(f"{folder}/photos/*.png", out=f"{folder}/out/{{stem}}.png",
                           chain=["invert"], device="cpu")  # fmt: skip
    report = run_inline(job, InlineRunner(), resume=resume)
    assert report.ok, report.failures


def careless(folder: Path) -> None:
    """Write a file under its own name, as no part of the library does."""
    with parts.PartFile(folder / "out/b.txt"), open(folder / "out/a.txt", "wb", 0) as file:
        for n in range(20):
            file.write(bytes([n]) * 1000)


def surface_picture(folder: Path) -> None:
    with create_surface(64, 64) as surface:
        surface.clear("red")
        surface.save(folder / "out/a.png")


def color_table(folder: Path) -> None:
    save_cube(Cube(np.eye(3, dtype=np.float32)[:2] * 0.5), folder / "out/a.cube")


def scene_video(folder: Path) -> None:
    with Scene(16, 16, fps=10, device="cpu") as scene:
        scene.add_overlay(color="red", size=(4, 4))
        scene.render_to(folder / "out/a.mp4", 0.5, progress=False)


def deep_picture(folder: Path) -> None:
    Frame.from_array(np.zeros((16, 16, 3), np.float32)).save(folder / "out/a.tif")


#: What a page of one filter has.
PAGE = ("chain.json", "dala.d.ts", "dala.js", "index.html", "picture.jpg", "shaders/0.wgsl",
        "still.jpg")  # fmt: skip
#: Kinds whose files belong together, and those of them whose folder is not there before.
TOGETHER, NEW = ("page folder", "new page folder", "torn"), ("new page folder",)


def torn(folder: Path) -> None:
    """Replace the files of a folder one by one, without a sign of it."""
    parts.PartFile(folder / "out/x").discard()
    for name in PAGE:
        (folder / "out/page" / name).write_bytes(b"new")


#: What the checks must find.
WRONG: dict[str, tuple[Callable[[Path], None], list[str]]] = {
    "careless": (careless, ["a.txt"]),
    "torn": (torn, [f"page/{name}" for name in PAGE]),
}
#: Everything that writes a file: what does it, and the results.
KINDS: dict[str, tuple[Callable[[Path], None], list[str]]] = {
    "video": (command("filter", "FOLDER/in.mp4", "FOLDER/out/a.mp4", "--invert"), ["a.mp4"]),
    "matroska": (command("filter", "FOLDER/in.mp4", "FOLDER/out/a.mkv", "--invert"), ["a.mkv"]),
    "gif": (command("filter", "FOLDER/in.mp4", "FOLDER/out/a.gif", "--invert"), ["a.gif"]),
    "webp": (command("filter", "FOLDER/in.mp4", "FOLDER/out/a.webp", "--invert"), ["a.webp"]),
    "png": (command("filter", "FOLDER/in.png", "FOLDER/out/a.png", "--invert"), ["a.png"]),
    "audio": (sound, ["a.flac"]),
    "apng": (command("filter", "FOLDER/in.mp4", "FOLDER/out/a.apng", "--invert"), ["a.apng"]),
    "jpeg": (command("filter", "FOLDER/in.png", "FOLDER/out/a.jpg", "--invert"), ["a.jpg"]),
    "deep picture": (deep_picture, ["a.tif"]),
    "surface": (surface_picture, ["a.png"]),
    "table": (color_table, ["a.cube"]),
    "scene video": (scene_video, ["a.mp4"]),
    "concat": (command("concat", "FOLDER/in.mp4", "FOLDER/in.mp4", "-o", "FOLDER/out/a.mp4"),
               ["a.mp4"]),
    "page": (command("export", "--invert", "-o", "FOLDER/out/a.html"), ["a.html"]),
    **{kind: (command("export", "--invert", "-o", "FOLDER/out/page"),
              [f"page/{name}" for name in PAGE]) for kind in TOGETHER[:2]},
    "scene": (scene_file, ["a.json"]),
    "cut": (command("cut", "FOLDER/in.mp4", "--from", "0", "--to", "0.2", "-o",
                    "FOLDER/out/a.mp4"), ["a.mp4"]),
    "batch pictures": (lambda folder: batch_job(folder, "images"), ["0.png", "1.png", "2.png"]),
    "batch videos": (lambda folder: batch_job(folder, "videos"), ["long.mp4", "short.mp4"]),
}  # fmt: skip


def inputs(folder: Path) -> None:
    """Make what the kinds read."""
    from tests.support.clips import clip

    for name in ("films", "photos"):
        (folder / name).mkdir()
    for n in range(3):
        Frame.from_array(np.full((16, 16, 4), 60 * n, np.uint8)).save(folder / f"photos/{n}.png")
    shutil.copy(folder / "photos/1.png", folder / "in.png")
    video.write(folder / "in.mp4", [np.full((32, 32, 3), 9 * n, np.uint8) for n in range(8)],
                fps=10, device="cpu")  # fmt: skip
    clip(folder / "films/long.mp4", 12, gop=4)
    clip(folder / "films/short.mkv", 4, sound=False)


# children -----------------------------------------------------------------------------------------
def child(work: Callable[[], Any]) -> tuple[int, str]:
    """Run something in a fork; return how it ended and what it says."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        text, code = "", 1
        try:
            os.close(reading)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            parts._searched.clear()
            text, code = json.dumps(work()), 0
        except BaseException:
            text = traceback.format_exc()
        finally:
            os.write(writing, text.encode()[-60_000:])
            os._exit(code)
    os.close(writing)
    said = b""
    while select.select([reading], [], [], PATIENCE)[0]:
        block = os.read(reading, 1 << 16)
        if not block:
            break
        said += block
    else:
        os.kill(process, signal.SIGKILL)
        said = b"it hangs"
    os.close(reading)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return (1 if said == b"it hangs" else status), said.decode()


#: Calls that are counted after a file got its name.
_AFTER = 20
#: Calls that are counted from now on.
_armed: float = 0


def _noticed(event: str, args: tuple[Any, ...]) -> None:
    """An unfinished file is opened: encoding begins. It ends after its file got its name."""
    global _armed
    if event not in ("open", "os.rename") or not isinstance(args[0], str | bytes):
        return
    if ".dala.part" in os.fsdecode(args[0]):
        _armed = math.inf if event == "open" else _AFTER


def counting(work: Callable[[], Any], end: int | None) -> int:
    """Count the calls while there are unfinished files; kill this process at one."""
    numbers = itertools.count()
    last = 0

    def called(*_: Any) -> None:
        nonlocal last
        global _armed
        if _armed > 0:
            _armed -= 1
            last = next(numbers)
            if last == end:
                os.kill(os.getpid(), signal.SIGKILL)

    threading.setprofile(called)
    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return last


def prepared(folder: Path, kind: str = "", out: bool = True) -> None:
    """Put the old files in place."""
    if out:
        shutil.rmtree(folder / "out", ignore_errors=True)
        (folder / "out").mkdir()
    for name in (KINDS | WRONG)[kind][1] if kind and kind not in NEW else ():
        (folder / "out" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "out" / name).write_bytes(OLD)


def contents(folder: Path, names: list[str]) -> list[bytes]:
    paths = [folder / "out" / name for name in names]
    return [path.read_bytes() if path.exists() else b"" for path in paths]


def left_over(folder: Path) -> list[str]:
    return [str(path) for path in (folder / "out").rglob("*") if ".dala.part" in path.name]


def reference(folder: Path, kind: str) -> list[bytes]:
    """Return the new files of a run without trouble. What it compiles, the forks have."""
    work, names = (KINDS | WRONG)[kind]
    prepared(folder, kind)
    work(folder)
    return contents(folder, names)


def check(folder: Path, kind: str, new: list[bytes]) -> list[str]:
    """Return which of the files are neither the old one nor the new one."""
    names = (KINDS | WRONG)[kind][1]
    found, old = contents(folder, names), [b"" if kind in NEW else OLD] * len(names)
    three = zip(names, found, old, new, strict=True)
    wrong = [f"{name} is partial" for name, one, *whole in three if one not in whole]
    if kind in TOGETHER and found not in (old, new) and not left_over(folder):
        wrong.append("it is neither the old folder nor the new one, and nothing says so")
    return wrong


def kill_all(folder: Path, count: int, kinds: list[str]) -> list[str]:
    """Kill each kind at some moments; return what was wrong."""
    sys.addaudithook(_noticed)
    wrong = []
    for kind in kinds:
        work, names = (KINDS | WRONG)[kind]
        new = reference(folder, kind)
        code, said = child(lambda: counting(lambda: work(folder), None))  # noqa: B023
        total = int(said)
        chance = random.Random(f"{kind} {count}")
        killed = 0
        for end in sorted(chance.sample(range(total), min(count, total))):
            code = 0
            while code == 0 and end:  # a run with fewer calls than the counted one is tried again
                prepared(folder, kind)
                code, said = child(lambda: counting(lambda: work(folder), end))  # noqa: B023
                found = check(folder, kind, new)
                if found or code not in (0, -signal.SIGKILL):
                    wrong.append(f"{kind}, killed at {end} of {total}: {found} {said}")
                end //= 2
            killed += code == -signal.SIGKILL
        code, said = child(lambda: work(folder))  # noqa: B023
        if code or left_over(folder) or contents(folder, names) != new:
            wrong.append(f"{kind}, after {killed} kills: {said} {left_over(folder)}")
        sys.stdout.write(f"{kind}: killed {killed} times, over {total} calls\n")
        if not killed:
            wrong.append(f"{kind}: no child was killed")
    return wrong


# a full disk --------------------------------------------------------------------------------------
def fill_all(folder: Path, rooms: list[int], kinds: list[str]) -> list[str]:
    """Let each kind write to a disk with so many free pages; return what was wrong."""
    wrong = []
    for kind in kinds:
        work, names = (KINDS | WRONG)[kind]
        new = reference(folder, kind)
        failed = 0
        for room in rooms:
            prepared(folder)
            out = folder / "out"
            mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(out)]
            subprocess.run(mount, check=True)
            try:
                prepared(folder, kind, out=False)
                state = os.statvfs(out)
                (out / "filler").write_bytes(bytes((state.f_bavail - room) * state.f_bsize))
                code, said = child(lambda: work(folder))  # noqa: B023
                failed += code != 0
                found = [*check(folder, kind, new), *left_over(folder)]
                if not code and contents(folder, names) != new:
                    found.append("success is reported")
                if code and not re.search(r"\n(AssertionError|OSError|dala\.errors\.)", said):
                    found.append(said)
                (out / "filler").unlink()
                code, said = child(lambda: work(folder))  # noqa: B023
                if code or contents(folder, names) != new:
                    found.append(f"not made with more room: {said}")
                if found:
                    wrong.append(f"{kind}, {room} pages: {found}")
            finally:
                subprocess.run(["umount", str(out)], check=True)
        sys.stdout.write(f"{kind}: failed {failed} times of {len(rooms)}\n")
        if not failed:
            wrong.append(f"{kind}: the disk was never full")
    return wrong


def print_into(path: str) -> int:
    """Write a file and print a line, as if nothing could be closed."""
    with open(path, "wb", 0) as file:
        file.write(b"the result")
        with contextlib.suppress(OSError):
            os.write(1, b"a line")
    return 0


# standard streams ---------------------------------------------------------------------------------
def closed(words: list[str], numbers: list[int]) -> int:
    """Run a command as if the shell had closed some standard streams."""
    names = ("stdin", "stdout", "stderr")
    for number in numbers:
        os.close(number)
        setattr(sys, names[number], None)
        setattr(sys, f"__{names[number]}__", None)
    try:
        return print_into(words[1]) if words[0] == "print into" else main(words)
    except SystemExit as ended:
        return int(ended.code or 0)


def close_all(folder: Path, ways: list[list[int]], commands: list[list[str]]) -> list[str]:
    """Run each command without some of its standard streams, and with all; compare the results."""
    wrong = []
    for words in commands:
        results = []
        for numbers in ([], *ways):
            prepared(folder)
            if numbers:
                code, said = child(lambda: closed(words, numbers))  # noqa: B023
            else:  # in this process: what it compiles, the forks have
                code, said = 0, str(closed(words, []))
            if code or int(said) not in (0, 1, 2):
                wrong.append(f"{words} without {numbers}: {said}")
                break
            files = {path: path.read_bytes() for path in (folder / "out").rglob("*.*")
                     if path.is_file() and ".dala-batch" not in path.parts}  # fmt: skip
            results.append((int(said), files))
            if results[-1] != results[0]:
                wrong.append(f"{words} without {numbers}: {said}, {sorted(files)} differ")
        else:
            code, files = results[0]
            sys.stdout.write(f"{words[0]}: {code}, {len(files)} files\n")
    return wrong


def run() -> int:
    action, folder, *rest = sys.argv[1:]
    place = Path(folder)
    inputs(place)
    if action == "kill":
        wrong = kill_all(place, int(rest[0]), rest[1:] or list(KINDS))
    elif action == "full":
        wrong = fill_all(place, json.loads(rest[0]), rest[1:] or list(KINDS))
    else:
        wrong = close_all(place, *map(json.loads, rest))
    for line in wrong:
        sys.stdout.write(line + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(run())
