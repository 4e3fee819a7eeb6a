from __future__ import annotations

from engine.core.errors import ConfigError, EngineError, ModelError, error_class


def tree(root: type[EngineError]) -> list[type[EngineError]]:
    return [root, *(below for child in root.__subclasses__() for below in tree(child))]


def test_every_error_of_the_tree_is_found_by_its_code() -> None:
    for wanted in tree(EngineError):
        if "code" in vars(wanted):  # others, of single modules, are known by their parent's
            assert error_class(wanted.code, ModelError) is wanted
    assert error_class("config_error", ModelError) is ConfigError


def test_unknown_code_falls_back() -> None:
    assert error_class("no_such", ModelError) is ModelError
    assert error_class(None, ModelError) is ModelError
