"""``python -m benchmarks [TOPIC ...]``."""

from __future__ import annotations

import importlib
import sys

TOPICS = ("startup", "calls", "elementwise", "gpu")


def main() -> int:
    wanted = sys.argv[1:] or list(TOPICS)
    unknown = [t for t in wanted if t not in TOPICS]
    if unknown:
        print(f"no topic {unknown[0]!r}; there are {', '.join(TOPICS)}", file=sys.stderr)
        return 2
    for topic in wanted:
        print(f"\n== {topic} ==")
        importlib.import_module(f"benchmarks.{topic}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
