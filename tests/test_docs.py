"""What README and docs/ say can be followed: links lead somewhere, examples are valid policies, commands exist and are told of."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from agentsh_net.cli.main import cli
from agentsh_net.core.audit.event_types import EVENT_TYPES
from agentsh_net.core.audit.events import Event
from agentsh_net.core.configuration.config import parse
from agentsh_net.core.configuration.settings import Config, Metrics

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = sorted([README, *(ROOT / "docs").glob("*.md")])
# What the reader of a file fills in by itself, or has another name for.
NOT_WRITTEN = {"transport", "host", "source", "kind", "value"}
OF_MCP = {"denied_tools", "allowed_tools", "version_pinning", "inspection"}


def found(pattern: str) -> list[Any]:
    return [
        pytest.param(page, match[1], id=f"{page.name}: {match[1][:40]!r}")
        for page in PAGES
        for match in re.finditer(pattern, page.read_text(), re.MULTILINE | re.DOTALL)
    ]


@pytest.mark.parametrize(("page", "link"), found(r"\]\(([^)]+)\)"))
def test_a_link_leads_to_a_file_of_the_tree(page: Path, link: str) -> None:
    assert link.startswith("https://") or (page.parent / link.partition("#")[0]).exists()


@pytest.mark.parametrize(("page", "path"), found(r"`((?:agentsh_net|proxy|bpf|deploy|tests|docs)/[\w./-]+)`"))
def test_a_file_that_is_named_exists(page: Path, path: str) -> None:
    assert (ROOT / path).exists()


def declaration(name: str, served: dict[str, Any]) -> dict[str, str]:
    """A server of this name, of a transport for which the gateway may do this."""
    if "upstream_security" in served:
        return {"id": name, "type": "http", "url": "https://mcp.example/mcp"}
    return {"id": name, "type": "stdio", "command": "x"}


@pytest.mark.parametrize(("page", "text"), found(r"^```yaml\n(.*?)^```"))
def test_an_example_is_a_valid_policy(page: Path, text: str) -> None:
    mapping = yaml.safe_load(text)
    if mapping.keys() <= OF_MCP:
        mapping = {"sandbox": {"mcp": mapping}}
    served = mapping.get("gateway", {}).get("servers", {})
    rules = mapping.get("sandbox", {}).get("mcp", {})
    named = [
        rule["server"]
        for key in ("denied_tools", "allowed_tools")
        for rule in rules.get(key, ())
        if "server" in rule
    ]
    declared = [declaration(name, served.get(name, {})) for name in sorted({*served, *named})]
    mapping.setdefault("sandbox", {}).setdefault("mcp", {}).setdefault("servers", declared)
    assert parse({"version": 1, **mapping}).version == 1


def test_the_page_of_the_policy_file_has_every_key_with_its_default() -> None:
    page = (ROOT / "docs/configuration.md").read_text()
    defaults, lists = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    said = parse(yaml.safe_load(defaults))
    assert dataclasses.replace(said, metrics=Metrics()) == Config(metrics=Metrics())  # which listens nowhere
    written = keys_of(yaml.safe_load(defaults)) | keys_of(yaml.safe_load(lists))
    assert {name for name in keys_of_sections(Config) if name not in written} == set()


def keys_of(value: Any) -> set[str]:
    if isinstance(value, list):
        return set().union(*map(keys_of, value))
    return {*value, *set().union(*map(keys_of, value.values()))} if isinstance(value, dict) else set()


def keys_of_sections(section: type) -> set[str]:
    """The keys of a section and of those in it, as the schema's dataclasses name them."""
    names = {"in" if field.name == "location" else field.name for field in dataclasses.fields(section)}
    for hint in typing.get_type_hints(section).values():
        for part in (hint, *typing.get_args(hint)):
            if dataclasses.is_dataclass(part) and isinstance(part, type):
                names |= keys_of_sections(part)
    return names - NOT_WRITTEN


@pytest.mark.parametrize(("page", "command"), found(r"\./dev ([a-z]+)"))
def test_a_command_of_dev_exists(page: Path, command: str) -> None:
    assert re.search(rf"^    {command}\)", (ROOT / "dev").read_text(), re.MULTILINE)


def test_the_readme_tells_of_every_command() -> None:
    table = README.read_text()
    context = click.Context(cli)
    missing = [name for name in cli.list_commands(context) if not re.search(rf"`[^`]*\b{name}\b", table)]
    assert not missing


def leaves(command: click.Command, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield every command that is no group, with the words that call it."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from leaves(below, f"{path} {name}".strip())


def test_the_page_of_operation_has_the_keys_of_every_command_that_speaks_json() -> None:
    page = (ROOT / "docs/operation.md").read_text()
    told = set(re.findall(r"`([^`]+)`", " ".join(re.findall(r"^\| (`.*?) \|", page, re.MULTILINE))))
    speaks = {
        path
        for path, command in leaves(cli)
        if {"--json", "--jsonl"} & {option for parameter in command.params for option in parameter.opts}
    }
    assert speaks
    assert speaks - told == set()


def test_the_readme_leads_to_every_page_of_docs() -> None:
    assert {page.name for page in PAGES} - {"README.md"} == set(
        re.findall(r"\(docs/([\w.]+)\)", README.read_text())
    )


def rows_of_events() -> dict[str, set[str]]:
    """Return the words in code of each row of the page of events that tells of types, by type."""
    rows: dict[str, set[str]] = {}
    for line in (ROOT / "docs" / "events.md").read_text().splitlines():
        cells = line.split(" | ")
        named = re.findall(r"`(\w+)`", cells[0]) if len(cells) == 3 else []
        rows |= {kind: set(re.findall(r"`([\w.]+)`", cells[2])) for kind in named}
    return rows


def test_the_page_of_events_has_every_type_with_every_field() -> None:
    told = rows_of_events()
    common = {field.name for field in dataclasses.fields(Event)}
    assert told.keys() == EVENT_TYPES.keys()
    for name, kind in EVENT_TYPES.items():
        fields = {field.name for field in dataclasses.fields(kind)} - common
        if name == "mcp_tool_altered":
            fields -= told["mcp_tool_seen"]  # "as above"
        assert told[name] == fields, f"{name}: docs/events.md tells of other fields than it has"
    page = (ROOT / "docs" / "events.md").read_text()
    assert all(f"`{name}`" in page for name in {*common, "type"})
