"""``python -m fuzzer``: the same as the command ``eddy``."""

import sys

from fuzzer.cli import main

sys.exit(main())
