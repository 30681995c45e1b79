"""``python -m dala.cli`` is the ``dala`` command."""

import sys

from dala.cli import main

sys.exit(main())
