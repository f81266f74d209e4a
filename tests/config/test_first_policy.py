"""The first policy file is audit mode over what was found, and the daemon reads it as what was found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentsh_net.config import policy_file
from agentsh_net.config.first_policy import text
from agentsh_net.mcp_clients.declarations import Declared


def declared(**declaration: Any) -> Declared:
    return Declared({"id": "s", **declaration}, "cursor", Path("/home/u/.cursor/mcp.json"))


def load(tmp_path: Path, *found: Declared) -> Any:
    file = tmp_path / "policy.yaml"
    file.write_text(text(found))
    return policy_file.load(file, {}).config.sandbox.mcp


def test_without_a_server_it_is_a_policy_all_the_same(tmp_path: Path) -> None:
    mcp = load(tmp_path)
    assert (mcp.enforce_policy, mcp.servers) == (False, ())


def test_servers_come_with_their_places_and_without_their_environments(tmp_path: Path) -> None:
    server = declared(type="stdio", command="npx", args=["-y", "x"], env={"TOKEN": "hunter2"})
    assert "hunter2" not in text([server])
    assert "# from cursor: /home/u/.cursor/mcp.json" in text([server])
    (read,) = load(tmp_path, server).servers
    assert (read.command, read.args, read.env) == ("npx", ("-y", "x"), {})


@pytest.mark.parametrize(
    "value",
    [
        "${input:token}",
        "${HOME}",
        "$${X}",
        "${",
        "yes",
        "1.0",
        "a: b # c",
        "- x",
        "'",
        '"',
        "*",
        "&a",
        "|",
        "ünï",
        "\t",
        "\u2028",
        "😀",
        "",
    ],
)
def test_every_word_is_read_back_as_it_was(tmp_path: Path, value: str) -> None:
    (read,) = load(tmp_path, declared(type="stdio", command="x", args=["a", value])).servers
    assert read.args == ("a", value)


@pytest.mark.parametrize(
    "value", ["Bearer ${env:T}", "${input:key}", "$TOKEN", "Bearer {env:T}", "{file:~/.key}"]
)
def test_a_header_that_its_client_fills_in_is_left_to_the_client_and_passes_through_the_gateway(
    tmp_path: Path, value: str
) -> None:
    headers = {"Authorization": value, "X-Team": "red"}
    server = declared(type="http", url="https://x.example/mcp", headers=headers)
    (read,) = load(tmp_path, server).servers
    assert read.headers == {"X-Team": "red"}
    assert "# its client fills in Authorization" in text([server])
    file = tmp_path / "policy.yaml"
    file.write_text(text([server], gateway_port=8485))
    assert policy_file.load(file, {}).config.gateway.servers["s"].passthrough


def test_headers_that_stand_there_as_they_are_sent_are_the_gateways(tmp_path: Path) -> None:
    server = declared(type="http", url="https://x.example/mcp", headers={"Authorization": "Bearer pa$5"})
    file = tmp_path / "policy.yaml"
    file.write_text(text([server], gateway_port=8485))
    config = policy_file.load(file, {}).config
    assert config.sandbox.mcp.servers[0].headers == {"Authorization": "Bearer pa$5"}
    assert not config.gateway.servers


def test_a_file_name_cannot_break_out_of_its_comment(tmp_path: Path) -> None:
    server = Declared(
        {"id": "s", "type": "stdio", "command": "x"}, "cursor", Path("/home/u/a\n    fail_closed: true\n#")
    )
    assert load(tmp_path, server).fail_closed is False


def test_a_url_of_which_a_part_is_its_clients_says_so() -> None:
    declaration = {"id": "s", "type": "http", "url": "https://x.example/mcp"}
    note = "# its client fills in a part of this URL"
    assert note in text([Declared(declaration, "cursor", Path("/x"), open_url=True)])
    assert note not in text([Declared(declaration, "cursor", Path("/x"))])
