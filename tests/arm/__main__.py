"""Run the CPU engine's tests on ARM, under QEMU.

    python -m tests.arm                     # all pieces; those that passed before are not repeated
    python -m tests.arm --quick             # what `make test` runs
    python -m tests.arm engine/ops --again  # pieces by a part of their name
    python -m tests.arm --setup             # only make the root
    python -m tests.arm --processor neoverse-v1     # with SVE, in vectors of 32 bytes

Results and outputs of pieces are kept in ``build/arm/results``.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor

from tests.arm import root
from tests.arm.pieces import NEON, Piece, Result, known, output, pieces, run, summary


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.arm",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", help="parts of the names of pieces")
    parser.add_argument("--quick", action="store_true", help="only what `make test` runs")
    parser.add_argument("--again", action="store_true", help="also what passed before")
    parser.add_argument("--setup", action="store_true", help="only make the root")
    parser.add_argument("--processor", choices=root.PROCESSORS, default=NEON)
    parser.add_argument("--jobs", type=int, default=2, help="pieces at a time (default: 2)")
    args = parser.parse_args()
    try:
        root.prepare()
    except root.Unavailable as error:
        root.say(f"arm: {error}")
        return 1
    if args.setup:
        return 0
    chosen = [
        piece
        for piece in pieces(args.processor)
        if (piece.quick or not args.quick)
        and (not args.parts or any(part in piece.name for part in args.parts))
    ]

    def one(piece: Piece) -> Result:
        result = None if args.again else known(piece)
        before = ", as before" if result else ""
        result = result or run(piece)
        line = f"{result.seconds:6.0f} s  {piece.name}: {result.passed} passed{before}"
        root.say(line + (f", {len(result.failed)} FAILED" if result.failed else ""))
        if result.failed:
            root.say(output(piece)[-6000:])
        return result

    with ThreadPoolExecutor(args.jobs) as pool:
        results = dict(zip((p.name for p in chosen), pool.map(one, chosen), strict=True))
    for line in summary(results):
        root.say(f"{args.processor}: {line}")
    return int(any(result.failed for result in results.values()))


if __name__ == "__main__":
    sys.exit(main())
