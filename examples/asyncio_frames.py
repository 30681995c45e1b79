"""Frames through asyncio: two videos are filtered side by side, and the event loop stays free.

python examples/asyncio_frames.py     # out/astronaut.mp4 and out/chelsea.mp4
"""

import asyncio
from pathlib import Path

import dala
from dala.media import gpu, video


async def sharpened(name: str, folder: Path) -> int:
    """Write a sharpened copy of a sample video; return the number of frames."""
    clip = await asyncio.to_thread(dala.samples.video, name)
    count = 0
    async with (
        video.open(clip) as source,
        video.write(folder / f"{name}.mp4", fps=source.fps) as sink,
    ):
        async for frame in source:
            made = await asyncio.to_thread(gpu.sharpen, frame, amount=0.5)
            await sink.write_async(made)
            count += 1
    return count


async def main(folder: Path = Path("out")) -> dict[str, int]:
    """Filter the videos; return their numbers of frames by name."""
    folder.mkdir(parents=True, exist_ok=True)
    names = ("astronaut", "chelsea")
    counts = await asyncio.gather(*(sharpened(name, folder) for name in names))
    return dict(zip(names, counts, strict=True))


if __name__ == "__main__":
    print(asyncio.run(main()))
