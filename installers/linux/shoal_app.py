"""Where the frozen app begins."""

from __future__ import annotations

import os
import sys

from app.__main__ import main
from installers.setup_steps.frozen import restore_variables

if __name__ == "__main__":
    restore_variables(os.environ)
    sys.exit(main())
