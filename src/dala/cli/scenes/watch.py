"""``dala compose --watch``: show a scene while its file is edited."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final

from dala.arguments.paths import missing_file

if TYPE_CHECKING:
    from dala.gpu import Surface
    from dala.media import Scene
    from dala.media.scene.output import ScenePlayer

#: Seconds between two checks of the files.
PAUSE: Final = 0.2

Stamp = tuple[tuple[str, int, int], ...]


def run(args: argparse.Namespace) -> int:
    """Show the scene until the window is closed, the time is over, or Ctrl-C."""
    from dala.cli.common.arguments import show as show_report
    from dala.cli.common.signals import Stopped, stopping
    from dala.cli.view import default_show

    show = args.show or default_show()
    watch = Watch(args.scene, args.device, start=args.start or 0.0, fps=args.fps, size=args.size)
    try:
        with stopping():
            watch.run(None if show == "none" else show, args.seconds)
    except Stopped:
        raise
    except KeyboardInterrupt:
        pass  # the usual way to stop
    finally:
        watch.close()
    report = {"in": args.scene, "show": show, "device": watch.device, "frames": watch.frames}
    report |= {"loads": watch.loads, "failures": watch.failures, "dropped": watch.dropped}
    return show_report(args, report)


@dataclass
class Watch:
    """A scene file that is reloaded when it, or a file that it names, has changed.

    After an error the last good scene stays on the screen, and the error is printed on standard
    error. A file is loaded when it has not changed between two checks, as editors write in several
    steps.
    """

    path: Path
    device: str | None = None
    _: KW_ONLY
    start: float = 0.0
    fps: str | None = None
    size: tuple[int, int] | None = None
    pause: float = PAUSE
    #: Successful and failed loads.
    loads: int = 0
    failures: int = 0
    #: Frames shown, and dropped because they were late.
    frames: int = 0
    dropped: int = 0
    scene: Scene | None = None

    def __post_init__(self) -> None:
        self.path = Path(self.path)
        self._held = ExitStack()
        self._names: list[Path] = []
        self._loaded: Stamp | None = None
        self._seen: Stamp | None = None
        self._checked = 0.0
        if not self.path.is_file():
            raise missing_file(self.path)

    # files ----------------------------------------------------------------------------------------
    def check(self) -> bool:
        """Reload the scene if files have changed; return whether there is a new one."""
        stamp = _stamp([self.path, *self._names])
        if stamp == self._loaded:
            self._seen = stamp
            return False
        if stamp != self._seen and self._loaded is not None:
            self._seen = stamp  # it may be incomplete
            return False
        return self._load()

    def _load(self) -> bool:
        from dala.errors import DalaError, masked
        from dala.media.scene.file.load import files_of, load_scene, named_files

        before = _stamp([self.path])
        try:
            made = load_scene(self.path, self.device)
        except (DalaError, OSError) as error:
            self.failures += 1
            self._names = named_files(self.path) or self._names
            self._loaded = self._seen = before + _stamp(self._names)
            for line in masked(str(error)).splitlines():
                print(f"dala compose: {line}", file=sys.stderr, flush=True)
            return False
        self.close()
        self.scene = made
        self.device = made.device
        self._names = files_of(made)
        self._loaded = self._seen = before + _stamp(self._names)
        self.loads += 1
        return True

    # showing --------------------------------------------------------------------------------------
    def run(
        self,
        show: str | None,
        seconds: float | None = None,
        *,
        on_frame: Callable[[Surface | None], bool | None] | None = None,
    ) -> None:
        """Show the scene in real time.

        Args:
            show: the presenter; None for none.
            seconds: how long; until the viewer is closed by default.
            on_frame: called with the surface after each frame; the show ends if it returns False.
        """
        from dala import gpu

        end = None if seconds is None else monotonic() + seconds
        self.check()
        surface: Surface | None = None
        player: ScenePlayer | None = None
        began = monotonic()
        try:
            while end is None or monotonic() < end:
                now = monotonic()
                if now - self._checked >= self.pause:
                    self._checked = now
                    if self.check():
                        player = None
                if self.scene is None:
                    sleep(max(self.pause / 4, 0.01))
                    if on_frame is not None and on_frame(None) is False:
                        return
                    continue
                if player is None:
                    shown = self._shown(self.scene)
                    if surface is None:
                        title = self.path.name
                        surface = gpu.create_surface(
                            shown.width, shown.height, show=show, title=title
                        )
                        began = now
                    elif surface.size != (shown.width, shown.height):
                        surface.resize(shown.width, shown.height)
                    player = self._player(shown, surface, now - began)
                late = player.scene.frames_dropped
                player.step()
                self.frames += 1
                self.dropped += player.scene.frames_dropped - late
                if on_frame is not None and on_frame(surface) is False:
                    return
                if surface is not None and surface.presenter is not None and surface.wait_closed(0):
                    return
        finally:
            if surface is not None:
                surface.close()

    def _shown(self, scene: Scene) -> Scene:
        from dala.cli.compose import resized

        self._held.close()
        return self._held.enter_context(resized(scene, self.size))

    def _player(self, shown: Scene, surface: Surface, elapsed: float) -> ScenePlayer:
        """Return a player that continues at the current time and repeats the scene."""
        from dala.media.scene.output import ScenePlayer

        assert self.scene is not None
        start = self.start + elapsed
        return ScenePlayer(shown, surface, start=start, fps=self.fps, loop=self.scene.duration)

    def close(self) -> None:
        """Close the scene."""
        self._held.close()
        if self.scene is not None:
            self.scene.close()
            self.scene = None


def _stamp(paths: list[Path]) -> Stamp:
    found = []
    for path in paths:
        try:
            facts = path.stat()
            found.append((str(path), facts.st_mtime_ns, facts.st_size))
        except OSError:
            found.append((str(path), 0, -1))
    return tuple(found)
