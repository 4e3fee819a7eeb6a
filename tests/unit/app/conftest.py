"""Windows are drawn without a screen here; `tests/end2end/test_tray.py` has a real one."""

from __future__ import annotations

import os

os.environ["QT_QPA_PLATFORM"] = "offscreen"
os.environ["QT_SCALE_FACTOR"] = "1"
