"""Write the table of ``benchmarks.video.table`` into its page, and best and worst into README.

    python -m benchmarks.video.quote

Rows of a machine that others used are compared by processor time: their times decide nothing.
"""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

from benchmarks.harness import MAX_OTHERS, RESULTS

ROOT = pathlib.Path(__file__).parents[2]
PAGE, README = ROOT / "benchmarks/README.md", ROOT / "README.md"
_NAMES = {"h264": "H.264", "hevc": "HEVC", "vp9": "VP9", "av1": "AV1", "prores": "ProRes"}
_TABLE = re.compile(r"(?<=<!-- video\.table -->\n).*?(?=<!-- end -->)", re.DOTALL)
_LINE = re.compile(r"^\| `dala filter --blur`, five codecs.*$", re.MULTILINE)


def stored() -> dict[str, Any]:
    """Return the stored results."""
    found: dict[str, Any] = json.loads((RESULTS / "video_table.json").read_text(encoding="utf-8"))[
        "results"
    ]
    return found


def quiet(found: dict[str, Any]) -> bool:
    """Return whether the machine was quiet in all rows."""
    return all((row["others"] or 0.0) <= MAX_OTHERS for row in found["rows"].values())


def seconds(found: dict[str, Any], row: dict[str, Any], contestant: str) -> float:
    """Return the time that counts: that of the clock on a quiet machine, else of the processor."""
    if quiet(found):
        return float(row["times"][contestant]["min_ms"]) / 1e3
    return float(row["cpu_s"][contestant])


def table(found: dict[str, Any]) -> str:
    """Return the table of the page."""
    kind = "seconds" if quiet(found) else "seconds of processor time (others used the machine)"
    lines = [
        f"| {kind} | frames | Dala | ffmpeg | ffmpeg / Dala | processor: Dala, ffmpeg, encoder "
        "alone | MB | SSIM |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, row in found["rows"].items():
        codec, size = name.split()
        ours, theirs = (seconds(found, row, c) for c in ("dala", "ffmpeg"))
        pairs = {key: [row[key][c] for c in ("dala", "ffmpeg")] for key in ("peak_mb", "ssim")}
        used = [row["cpu_s"]["dala"], row["cpu_s"]["ffmpeg"]]
        used += [row["encoder_alone"]["cpu_s"]] if "encoder_alone" in row else []
        lines.append(
            f"| {_NAMES[codec]} {size} | {row['frames']} | {ours:.2f} | {theirs:.2f} | "
            f"{theirs / ours:.2f} | {', '.join(f'{n:.2f}' for n in used)} | "
            f"{pairs['peak_mb'][0]}, {pairs['peak_mb'][1]} | "
            f"{pairs['ssim'][0]:.4f}, {pairs['ssim'][1]:.4f} |"
        )
    if "one_frame" in found:
        ours, theirs = (seconds(found, found["one_frame"], c) for c in ("dala", "ffmpeg"))
        lines.append(f"\nA video of one frame takes {ours:.2f} s; ffmpeg takes {theirs:.2f} s.")
    return "\n".join(lines) + "\n"


def line(found: dict[str, Any]) -> str:
    """Return the row of README: the best and the worst."""

    def told(item: tuple[str, dict[str, Any]], contestant: str) -> str:
        return f"{seconds(found, item[1], contestant):.2f} s"

    ranked = sorted(
        found["rows"].items(),
        key=lambda item: seconds(found, item[1], "ffmpeg") / seconds(found, item[1], "dala"),
    )
    worst, best = ranked[0], ranked[-1]
    names = [f"{_NAMES[n.split()[0]]} {n.split()[1]}" for n, _ in (best, worst)]
    what = "" if quiet(found) else ", seconds of the processor"
    return (
        f"| `dala filter --blur`, five codecs, 480p to 4K: [best and worst of 20]"
        f"(benchmarks/README.md#notes-on-videotable){what} | "
        f"{names[0]} {told(best, 'dala')}; {names[1]} {told(worst, 'dala')} | "
        f"ffmpeg {told(best, 'ffmpeg')}; {told(worst, 'ffmpeg')} |"
    )


def main() -> None:
    """Write both."""
    found = stored()
    for page, pattern, text in ((PAGE, _TABLE, table(found)), (README, _LINE, line(found))):
        old = page.read_text(encoding="utf-8")
        page.write_text(pattern.sub(lambda _, text=text: text, old), encoding="utf-8")


if __name__ == "__main__":
    main()
