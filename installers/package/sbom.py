"""What an installer consists of and fetches, as CycloneDX."""

from __future__ import annotations

import json
from pathlib import Path

from installers.package import tools
from installers.package.plan import Build

_PARTS = {
    "gui.txt": "carried by the installer for Linux, fetched by the one for Windows",
    "engine.txt": "fetched when Shoal is set up",
    "torch.txt": "fetched when Shoal is set up on a computer with an NVIDIA card",
    "torch-cpu.txt": "fetched when Shoal is set up on a computer without one",
}
_VALIDATE = """
import json, sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
text = open(sys.argv[1], encoding="utf-8").read()
version = SchemaVersion.from_version(json.loads(text)["specVersion"])
sys.exit(str(JsonStrictValidator(version).validate_str(text) or "") or 0)
"""


def sbom(build: Build) -> str:
    """A bill of materials as JSON: every package of our lists with its hashes, and uv.

    Raises:
        BuildFailed: It could not be made.
    """
    programs = tools.environment(build, "tools", build.locks / "tools.txt")
    found: dict[str, dict[str, object]] = {}
    document: dict[str, object] = {}
    for name, when in _PARTS.items():
        document = _of(build, programs, build.locks / name)
        for component in _components(document):
            known = found.setdefault(str(component["purl"]), component)
            properties = known.setdefault("properties", [])
            assert isinstance(properties, list)
            properties.append({"name": "shoal:when", "value": when})
    uv = build.folder("sbom") / "uv.txt"
    uv.write_text(tools.pins_of(build.locks / "tools.txt", "uv"), "utf-8")
    for component in _components(_of(build, programs, uv)):
        component["properties"] = [{"name": "shoal:when", "value": "carried by every installer"}]
        found[str(component["purl"])] = component
    document["components"] = [found[purl] for purl in sorted(found)]
    document["dependencies"] = [
        {"ref": "shoal", "dependsOn": [found[p]["bom-ref"] for p in sorted(found)]}
    ]
    document["metadata"] = {
        "component": {
            "type": "application",
            "bom-ref": "shoal",
            "name": "shoal",
            "version": build.version,
            "licenses": [{"license": {"id": "Apache-2.0"}}],
        },
    }
    text = json.dumps(document, indent=1, sort_keys=True) + "\n"
    bill = build.folder("sbom") / "sbom.cdx.json"
    bill.write_text(text, "utf-8")
    build.run(programs / "python", "-c", _VALIDATE, bill, purpose="validate the bill of materials")
    return text


def _of(build: Build, programs: Path, lock: Path) -> dict[str, object]:
    text = build.run(
        *(programs / "cyclonedx-py", "requirements", "--output-reproducible", "--of", "JSON"),
        *("--no-validate", lock),  # the whole is validated, which takes as long as each part
        purpose=f"describe the packages of {lock.name}",
    )
    document = json.loads(text)
    assert isinstance(document, dict)
    return document


def _components(document: dict[str, object]) -> list[dict[str, object]]:
    components = document["components"]
    assert isinstance(components, list)
    for component in components:
        # Lines of a list mean nothing outside of it, and would differ from list to list.
        component.pop("description", None)
        component["bom-ref"] = component["purl"]
    return components
