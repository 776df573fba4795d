"""``python -m tailwise.cli`` is the command ``tailwise``."""

import sys

from tailwise.cli import main

if __name__ == "__main__":
    sys.exit(main())
