"""What the package says of itself is so: typed where it claims to be, its version, its licence, and what it asks for."""

import tomllib
from pathlib import Path

import agentsh_net

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WHEEL = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]


def test_what_claims_to_be_typed_says_so_to_type_checkers():
    assert "Typing :: Typed" in PROJECT["classifiers"]
    for package in WHEEL["packages"]:
        assert (ROOT / package / "py.typed").is_file(), f"{package} lacks py.typed (PEP 561)"


def test_the_version_is_the_packages():
    assert PROJECT["version"] == agentsh_net.__version__


def test_the_files_that_the_metadata_names_are_there():
    for name in (PROJECT["readme"], *PROJECT["license-files"], *WHEEL["force-include"]):
        assert (ROOT / name).exists(), name


def test_an_extra_asks_for_no_older_library_than_another():
    asked = [line for extra in PROJECT["optional-dependencies"].values() for line in extra]
    by_name = {}
    for line in asked:
        name, _, version = line.partition(">=")
        by_name.setdefault(name, set()).add(version)
    assert {name: versions for name, versions in by_name.items() if len(versions) > 1} == {}
