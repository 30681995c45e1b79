"""``python -m benchmarks [TOPIC ...]``."""

from __future__ import annotations

import importlib
import os
import sys

TOPICS = (
    "startup", "calls", "elementwise", "filters", "operations", "drawing", "compositing", "media",
    "video", "gif", "hdr", "audio", "eventloop", "models", "shaders", "gpu",
)  # fmt: skip


def main() -> int:
    # Idle OpenMP threads would spin on the core that the next contestant needs.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("KMP_BLOCKTIME", "0")
    wanted = sys.argv[1:] or list(TOPICS)
    unknown = [t for t in wanted if t not in TOPICS]
    if unknown:
        print(f"unknown topic {unknown[0]!r}; topics: {', '.join(TOPICS)}", file=sys.stderr)
        return 2
    for topic in wanted:
        print(f"\n== {topic} ==")
        importlib.import_module(f"benchmarks.{topic}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
