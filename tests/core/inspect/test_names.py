"""Names outside the alphabet and names that pass for others are found; styles, plurals and numbers are names of their own."""

from __future__ import annotations

import pytest

from agentsh_net.core.inspect import names
from agentsh_net.core.inspect.names import Alike


@pytest.mark.parametrize("name", ["a", "read_file", "get-sum", "ns.tool", "A1", "x" * 128])
def test_names_of_the_protocol_are_no_finding(name: str) -> None:
    assert not list(names.unusual(name, "$.name"))


@pytest.mark.parametrize(
    ("name", "severity"),
    [
        ("", "medium"),
        ("read file", "low"),
        ("x" * 129, "medium"),
        ("/a/b", "low"),
        ("a;b", "medium"),
        ("r\u0435ad", "high"),
        ("read\u200b", "high"),
        ("a\nb", "high"),
        ("read\n", "high"),
    ],
)
def test_others_are_found_and_shown(name: str, severity: str) -> None:
    (found,) = names.unusual(name, "$.name")
    assert (found.pattern, found.severity) == ("unusual-name", severity)
    assert found.excerpt.isprintable()
    assert len(found.excerpt) < 400


def imitated(name: str, other: str = "send_email") -> tuple[str, str, str] | None:
    """Return what a tool of the later server imitates."""
    return Alike({"mail": [other], "evil": [name]}, names.SHORTEST_TOOL).find("evil", name)


@pytest.mark.parametrize(
    "name", ["send_ema1l", "send_emai\u217c", "s\u0435nd_email", "5end_email", "send_emall"]
)
def test_a_disguised_name_is_found(name: str) -> None:
    assert imitated(name) == ("mail", "send_email", "high")


@pytest.mark.parametrize("name", ["send_emial", "send_emaill", "sendd_email", "send_emal", "snd_email"])
def test_a_slip_of_the_finger_is_found(name: str) -> None:
    assert imitated(name) == ("mail", "send_email", "medium")


@pytest.mark.parametrize(
    "name",
    [
        "send_email",
        "sendEmail",
        "send-email",
        "send_emails",
        "send_email2",
        "send_mail_to",
        "read_email",
        "get",
    ],
)
def test_the_same_name_another_style_and_other_names_are_not(name: str) -> None:
    assert imitated(name) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [("get_tags", "get_tabs"), ("list_pods", "list_jobs"), ("add", "and"), ("get_me", "get_pr")],
)
def test_honest_names_a_letter_apart_are_not(one: str, other: str) -> None:
    assert imitated(one, other) is None


def test_the_impostor_is_the_one_in_disguise_whoever_is_declared_first() -> None:
    alike = Alike({"evil": ["send_ema1l"], "mail": ["send_email"]}, names.SHORTEST_TOOL)
    assert alike.find("evil", "send_ema1l") is not None
    assert alike.find("mail", "send_email") is None


def test_between_equals_it_is_the_later_one() -> None:
    alike = Alike({"mail": ["send_email"], "evil": ["send_emial"]}, names.SHORTEST_TOOL)
    assert alike.find("evil", "send_emial") is not None
    assert alike.find("mail", "send_email") is None


def test_one_server_may_name_its_own_tools_as_it_likes() -> None:
    alike = Alike({"mail": ["send_email", "send_emial"]}, names.SHORTEST_TOOL)
    assert alike.find("mail", "send_emial") is None


@pytest.mark.parametrize(
    "pair",
    [("filesystem", "fi1esystem"), ("github", "g\u0456thub"), ("weather", "waether"), ("slack", "slackk")],
)
def test_servers_are_compared_likewise(pair: tuple[str, str]) -> None:
    alike = Alike({sid: (sid,) for sid in pair}, names.SHORTEST_SERVER)
    assert alike.find(pair[1], pair[1]) is not None
    assert alike.find(pair[0], pair[0]) is None


@pytest.mark.parametrize(
    "pair",
    [("github", "gitlab"), ("server-1", "server-2"), ("memory", "memory2"), ("fs", "fz"), ("mail", "main")],
)
def test_honest_servers_are_not(pair: tuple[str, str]) -> None:
    alike = Alike({sid: (sid,) for sid in pair}, names.SHORTEST_SERVER)
    assert all(alike.find(sid, sid) is None for sid in pair)


def test_a_slip_is_found_among_many_numbered_names() -> None:
    ids = [*(f"server{n}" for n in range(200)), "sevrer7", "github", "gihtub"]
    alike = Alike({name: [name] for name in ids}, names.SHORTEST_SERVER)
    found = {name: alike.find(name, name) for name in ids}
    assert [name for name in ids if found[name]] == ["sevrer7", "gihtub"]
    assert found["gihtub"][:2] == ("github", "github")
