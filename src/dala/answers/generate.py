"""Write the table of answers: ``python -m dala.answers.generate [NAME ...]``.

Every row is computed on the reference engine, which takes about a minute. With names of filters
only their rows are, and those that the table lacks.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dala.answers.cases import names, rows
from dala.answers.table import FILE, checksum, stored, written

DEVICE = "reference"


def main(only: list[str]) -> None:
    """Compute the rows of some filters, or all, and write the table."""
    unknown = sorted(set(only) - set(names()))
    if unknown:
        sys.exit(f"answers: no such filter or group: {', '.join(unknown)}.")
    path = Path(__file__).with_name(FILE)
    before = stored() if path.exists() else {}
    sums, changed = {}, 0
    for row in rows():
        known = before.get(row.id)
        if known is None or not only or row.name in only:
            sums[row] = checksum(row.run(DEVICE))
            changed += sums[row] != known
        else:
            sums[row] = known
    path.write_text(written(sums), "ascii")
    gone = len(before.keys() - {row.id for row in sums})
    counts = f"{len(sums)} rows, {changed} new or changed, {gone} removed"
    sys.stdout.write(f"{path.name}: {counts}.\n")


if __name__ == "__main__":
    main(sys.argv[1:])
