"""The type that every command's `add_to` takes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    Commands: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Commands: TypeAlias = argparse._SubParsersAction  # not generic at run time in 3.11
