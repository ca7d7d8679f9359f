"""``python -m nysketch``: the command line."""

import sys

from nysketch._command import main

sys.exit(main())
