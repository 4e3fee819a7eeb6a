from __future__ import annotations

from pathlib import Path

import pytest

from engine.config import ClientConfig, Config
from engine.core.errors import ConfigError
from engine.models.layout import ModelFiles
from engine.node.compute import Compute
from engine.node.drafts import find_order
from tests.support.api_backend import tiny_spec


@pytest.mark.parametrize("named", ["owner/small-model", "starter", "~/no such folder"])
def test_draft_that_is_no_folder_here_is_not_looked_for_elsewhere(
    named: str, tmp_path: Path
) -> None:
    target = ModelFiles(tiny_spec(), tmp_path, "tiny")
    config = Config(client=ClientConfig(draft_model=named))
    compute = Compute("cpu", "float32", 1 << 30)
    with pytest.raises(ConfigError, match=f"no folder {named} to draft with"):
        find_order(target, config, compute, tmp_path)
