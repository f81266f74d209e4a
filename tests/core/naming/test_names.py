"""Whatever a client makes of a pair, the name leads back to it; and a name leads to nobody else without need."""

from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from situations import registry, servers, tool_rule

from agentsh_net.core.configuration.settings import Mcp, ServerRule
from agentsh_net.core.model import Candidate, Shown, ToolCall
from agentsh_net.core.naming.names import Names, wrapped_pair
from agentsh_net.core.verdicts.rules import Rules


def names(ids=(), offers=None, denied=(), denied_servers=()):
    rules = Rules(
        Mcp(
            denied_tools=tuple(map(tool_rule, denied)),
            denied_servers=tuple(map(ServerRule, denied_servers)),
        )
    )
    return Names(registry(servers(*ids), offers), rules)


def found(index, name, **call):
    meant = index.resolve(ToolCall(name, **call))
    return {(c.server_id, c.tool) for c in (*meant.registered, *meant.bound, *meant.guessed)}


def seen(index, name, **call):
    return {(c.server_id, c.tool) for c in index.resolve(ToolCall(name, **call)).registered}


# What each client does with a pair, written down from the client and not from core.naming.aliases.


def js(pattern, by, text):
    """Replace as JavaScript does: by UTF-16 code unit."""
    units = text.encode("utf-16-le", "surrogatepass")
    chars = [units[i : i + 2].decode("utf-16-le", "surrogatepass") for i in range(0, len(units), 2)]
    return "".join(re.sub(pattern, by, c) for c in chars)


def sha1(text):
    return hashlib.sha1(text.encode("utf-8", "surrogatepass")).hexdigest()


def claude_code(s, t):
    return f"mcp__{js('[^a-zA-Z0-9_-]', '_', s)}__{js('[^a-zA-Z0-9_-]', '_', t)}"


def codex_flat(s, t):
    raw = f"mcp__{s}__{t}"
    name = re.sub("[^a-zA-Z0-9_]", "_", raw)
    return name[:24] + sha1(raw) if len(name) > 64 else name


def gemini_cli(s, t):
    name = js("[^a-zA-Z0-9_.:-]", "_", f"mcp_{s}_{t}")
    return f"{name[:30]}...{name[-30:]}" if len(name) > 63 else name


def gemini_cli_old(s, t):
    name = js("[^a-zA-Z0-9_.-]", "_", f"{s}__{t}")
    return f"{name[:28]}___{name[-32:]}" if len(name) > 63 else name


def opencode(s, t):
    return js("[^a-zA-Z0-9_-]", "_", s) + "_" + js("[^a-zA-Z0-9_-]", "_", t)


def opencode_repaired(s, t):
    return opencode(s, t).lower()


def to_ascii(text):
    return ".".join(p if p.isascii() else "xn--" + p.encode("punycode").decode() for p in text.split("."))


def copilot_cli(s, t):
    return js("[^a-zA-Z0-9_-]", "-", f"{to_ascii(s)}-{to_ascii(t)}")[:64]


def cline(s, t):
    raw = f"{s}__{t}"
    clean = js("[^a-zA-Z0-9_-]", "_", raw)
    return raw if raw == clean and len(raw) <= 64 else f"{clean[:55]}_{sha1(raw)[:8]}"


def vscode(s, t):
    label = re.sub("[^a-z0-9_.-]+", "_", s.lower())[:13]
    return js("[^a-zA-Z0-9_-]", "_", f"mcp_{label}_{t}".replace(".", "_"))[:64]


def openai_agents(s, t):
    def part(text):
        return re.sub("[^a-zA-Z0-9_-]", "_", text).strip("_-")

    assume(part(s))
    assume(part(t))
    base = f"mcp_{part(s)}__{part(t)}"
    return base if len(base) <= 64 else f"{base[:55].rstrip('_-')}_{sha1(s + chr(0) + t)[:8]}"


def openai_agents_single(s, t):
    def part(text):
        return re.sub("[^a-zA-Z0-9_-]", "_", text).strip("_-")

    assume(part(s))
    assume(part(t))
    base = f"mcp_{part(s)}_{part(t)}"
    return base if len(base) <= 64 else f"{base[:55].rstrip('_-')}_{sha1(s + chr(0) + t)[:8]}"


def roo_code(s, t):
    return f"mcp--{js('[^a-zA-Z0-9_-]', '_', s)}--{js('[^a-zA-Z0-9_-]', '_', t)}"


def bare(s, t):
    return t


def joined(separator):
    def langchain_or_gateway(s, t):
        return f"{s}{separator}{t}"

    langchain_or_gateway.__name__ = f"joined_by_{separator}"
    return langchain_or_gateway


CLIENTS = [
    claude_code, codex_flat, gemini_cli, gemini_cli_old, opencode, opencode_repaired, copilot_cli, cline, vscode,
    openai_agents, openai_agents_single, roo_code, bare, joined("_"), joined("__"), joined("-"), joined("."),
]  # fmt: skip

visible_text = st.text(
    alphabet=st.one_of(
        st.sampled_from("abcXYZ019_-.:/ "), st.characters(categories=["L", "N"]), st.sampled_from("é工𝒜ßİ")
    ),
    min_size=1,
    max_size=24,
).filter(lambda s: s.strip() == s)
plain_text = st.from_regex(r"[a-z][a-z0-9_-]{0,40}", fullmatch=True)
tool_names = st.one_of(plain_text, visible_text, st.from_regex(r"[a-z][a-z_.]{50,70}[a-z]", fullmatch=True))


@pytest.mark.parametrize("client", CLIENTS, ids=lambda c: c.__name__)
@given(server=st.one_of(plain_text, visible_text), tool=tool_names)
def test_what_a_client_writes_leads_back_to_the_pair(client, server, tool):
    index = names([server, "other"], {server: [tool], "other": ["unrelated"]})
    assert (server, tool) in seen(index, client(server, tool))


@pytest.mark.parametrize("client", [c for c in CLIENTS if c is not bare], ids=lambda c: c.__name__)
@given(server=st.one_of(plain_text, visible_text), tool=tool_names)
def test_a_denied_pair_is_meant_before_it_was_ever_seen(client, server, tool):
    assume(not set(server + tool) & set("*?[]\\"))
    index = names([server], denied=[(server, tool)])
    assert (server, tool) in found(index, client(server, tool))


@pytest.mark.parametrize("trailing", ["", "__"])
@given(server=st.one_of(plain_text, visible_text), tool=tool_names)
def test_codex_names_the_server_in_the_namespace(trailing, server, tool):
    index = names([server, "other"], {server: [tool], "other": [tool]})
    namespace = "mcp__" + re.sub("[^a-zA-Z0-9_]", "_", server) + trailing
    name = re.sub("[^a-zA-Z0-9_]", "_", tool)
    if len(namespace) + len(name) + 2 > 64:
        assume(len(namespace) < 40)
        name = name[: 62 - len(namespace) - 13] + "_" + sha1("whatever codex hashes")[:12]
    assert (server, tool) in seen(index, name, namespace=namespace)
    assert ("other", tool) not in found(index, name, namespace=namespace) or server == "other"


@given(server=visible_text, tool=tool_names)
def test_anthropic_names_the_server_beside_the_tool(server, tool):
    index = names([server, "other"], {server: [tool], "other": [tool]})
    assert (server, tool) in seen(index, tool, server_name=server)
    assert found(index, tool, server_name="other") == {("other", tool)} or server == "other"


# One candidate where there is no doubt.


@pytest.mark.parametrize(
    "name",
    [
        "mcp__fs__read",
        "mcp_fs_read",
        "fs_read",
        "fs-read",
        "fs__read",
        "fs.read",
        "fs/read",
        "MCP__FS__Read ",
        "mcp_fs__read",
    ],
)
def test_a_prefixed_name_means_one_pair_whoever_else_offers_the_tool(name):
    index = names(["fs", "other"], {"fs": ["read"], "other": ["read"]})
    assert found(index, name) == {("fs", "read")}


def test_a_bare_name_means_every_server_that_offers_it():
    index = names(["fs", "other"], {"fs": ["read"], "other": ["read"]})
    assert found(index, "read") == {("fs", "read"), ("other", "read")}


@pytest.mark.parametrize(
    ("offers", "name", "expected"),
    [
        ({"a": ["b__c"], "a__b": ["c"]}, "mcp__a__b__c", {("a", "b__c"), ("a__b", "c")}),
        ({"s": ["a.b", "a_b"]}, "mcp__s__a_b", {("s", "a.b"), ("s", "a_b")}),
        ({"s": ["a.b", "a_b"]}, "mcp_s_a.b", {("s", "a.b")}),
        ({"s": ["a-b", "a_b"]}, "mcp__s__a-b", {("s", "a-b")}),
        ({"s": ["Read", "read"]}, "mcp__s__READ", {("s", "Read"), ("s", "read")}),
        ({"a": ["b_c"], "a_b": ["c"]}, "a_b_c", {("a", "b_c"), ("a_b", "c")}),
        ({"git": ["x"], "mcp_git": ["x"]}, "mcp_git_x", {("git", "x"), ("mcp_git", "x")}),
    ],
)
def test_an_ambiguous_name_means_everything_it_can(offers, name, expected):
    assert found(names(list(offers), offers), name) == expected


@given(st.text(alphabet="ab_-.", min_size=1, max_size=4), st.text(alphabet="ab_-.", min_size=1, max_size=4))
def test_no_spelling_of_one_server_means_a_tool_that_no_client_spells_so(server, tool):
    index = names(["zz", server], {"zz": ["q"], server: [tool]})
    assert found(index, "mcp__zz__q") == {("zz", "q")}


# Invisible, wide, other case: the same. Look-alikes: not.


@pytest.mark.parametrize(
    "name",
    [
        "drop_table",
        "DROP_TABLE",
        " drop_table\n",
        "drop\u200b_table",
        "ｄｒｏｐ_table",
        "mcp__DB__drop_table",
        "mcp__db__drop\u00ad_table",
    ],
)
def test_repaired_names_are_found(name):
    assert found(names(["db"], {"db": ["drop_table"]}), name) == {("db", "drop_table")}


def test_a_lookalike_is_no_known_tool():
    index = names(["db"], {"db": ["drop_table"]})
    assert index.resolve(ToolCall("drоp_table")).registered == ()
    assert index.resolve(ToolCall("mcp__db__drоp_table")).registered == ()


# Before discovery, and for servers that nobody declared.


@pytest.mark.parametrize("name", ["mcp__fs__rm", "mcp_fs_rm", "mcp_fs__rm"])
def test_an_mcp_name_binds_the_tool_of_a_declared_server_that_was_not_seen(name):
    meant = names(["fs"]).resolve(ToolCall(name))
    assert meant.bound == (Candidate("fs", "rm"),)
    assert meant.looks_mcp


@pytest.mark.parametrize("name", ["fs_rm", "fs-rm", "fs.rm", "fs__rm"])
def test_a_prefix_alone_is_a_guess(name):
    meant = names(["fs"]).resolve(ToolCall(name))
    assert meant.guessed == (Candidate("fs", "rm"),)
    assert not (meant.registered or meant.bound or meant.looks_mcp)


def test_a_seen_tool_elsewhere_hides_no_tool_of_an_unseen_server():
    # OpenCode calls fs/delete `fs_delete`; another server offers a tool of that very name
    index = names(["fs", "evil"], {"evil": ["fs_delete"]})
    assert found(index, "fs_delete") == {("evil", "fs_delete"), ("fs", "delete")}
    known = names(["fs", "evil"], {"evil": ["fs_delete"], "fs": ["read"]})
    assert found(known, "fs_delete") == {("evil", "fs_delete")}


def test_a_tool_called_like_anothers_takes_nothing_from_it():
    index = names(["fs", "evil"], {"evil": ["mcp__fs__delete"], "fs": ["read"]})
    assert found(index, "mcp__fs__delete") == {("evil", "mcp__fs__delete"), ("fs", "delete")}


def test_the_server_of_an_undeclared_mcp_name_is_read_in_every_way():
    index = names(["fs"])
    assert found(index, "mcp__evil__get") == {("evil", "get")}
    assert found(index, "mcp__a__b__c") == {("a", "b__c"), ("a__b", "c")}
    assert found(index, "mcp_a_b_c") == {("a", "b_c"), ("a_b", "c")}
    assert found(index, "mcp--evil--get") == {("evil", "get")}
    assert found(index, "mcp__") == set()
    assert index.resolve(ToolCall("mcp__")).looks_mcp


def test_a_gateway_in_between_does_not_hide_the_pair():
    index = names(["prod-db"], {"prod-db": ["drop_table"]})
    for inner in ("prod-db__drop_table", "prod-db_drop_table", "prod-db-drop_table"):
        assert ("prod-db", "drop_table") in found(index, f"mcp__gw__{inner}")
    assert ("prod-db", "drop_table") not in found(index, "mcp__gw__drop_table")


def test_a_server_that_only_a_deny_rule_names_is_known():
    assert found(names(denied_servers=["evil"]), "evil_get") == {("evil", "get")}
    assert found(names(denied=[("evil", "x*")]), "evil-get") == {("evil", "get")}


def test_a_denied_tool_of_any_server_is_meant_by_its_mangled_name():
    index = names(["fs"], denied=[{"tool": "disk.format"}])
    assert ("fs", "disk.format") in found(index, "mcp__fs__disk_format")
    assert index.unplaced("disk_format") == ("disk_format", "disk.format")


def test_a_clash_suffix_does_not_hide_a_tool_and_proves_nothing():
    index = names(["s"], {"s": ["read"]})
    meant = index.resolve(ToolCall("mcp__s__read_0123456789ab"))
    assert ("s", "read") in {(c.server_id, c.tool) for c in meant.bound}
    assert meant.registered == ()


def test_the_second_server_of_one_label_in_vscode():
    index = names(["github"], {"github": ["get"]})
    assert ("github", "get") in found(index, "mcp_github2_get")
    assert ("github", "Get.It") in found(names(["github"], {"github": ["Get.It"]}), "mcp_github2_get_it")
    assert found(names(["fs", "fs2"], {"fs": ["read"], "fs2": ["read"]}), "mcp_fs2_read") == {("fs2", "read")}


def test_a_namespace_of_no_declared_server_is_a_server_nobody_declared():
    index = names(["fs"], {"fs": ["read"]})
    assert found(index, "read", namespace="mcp__evil") == {("evil", "read")}
    assert found(index, "read", namespace="functions") == {("fs", "read")}


def test_a_wrapper_carries_the_pair_in_its_arguments():
    index = names(["fs", "other"], {"fs": ["read"], "other": ["read"]})
    arguments = {"server_name": "FS", "tool_name": "read", "arguments": "{}"}
    assert found(index, "use_mcp_tool", input=arguments) == {("fs", "read")}
    assert found(index, "call_mcp_tool", input={"server": "fs", "toolName": "read"}) == {("fs", "read")}
    assert wrapped_pair(ToolCall("read", input=arguments)) is None
    unreadable = index.resolve(ToolCall("use_mcp_tool", input="{"))
    assert unreadable.looks_mcp
    assert not unreadable.registered


def test_learned_names_add_to_what_a_name_spells():
    index = names(["fs", "web"], {"fs": ["read"], "web": ["get"]})
    shown = Shown((Candidate("fs", "read", "sha256:0"),))
    assert found(index, "MCP__x1__r", shown=shown) == {("fs", "read")}
    assert found(index, "mcp__web__get", shown=shown) == {("web", "get"), ("fs", "read")}


def test_hostile_names_end():
    index = names(["fs"], {"fs": ["read"]}, denied=[("fs", "rm"), {"tool": "kill"}])
    for name in (
        "mcp_" + "_" * 100_000,
        "mcp__" + "a__" * 50_000,
        "0" * 100_000,
        "\ud800" * 1000,
        "",
        " ",
        "__",
        "\u200b",
    ):
        assert not index.resolve(ToolCall(name)).registered
        index.resolve(ToolCall(name, namespace=name))
        index.resolve(ToolCall(name, server_name=name))


@given(st.text(max_size=40), st.text(max_size=10), st.text(max_size=10))
def test_any_text_is_resolved(name, namespace, server_name):
    index = names(["fs", "a_b"], {"fs": ["read", "工具"]}, denied=[("fs", "rm")])
    index.resolve(ToolCall(name, namespace=namespace, server_name=server_name))


# Clients and gateways that are in no table of ours: what they write is read backwards, and only to find what is denied.


@pytest.mark.parametrize(
    "name",
    [
        "functions.delete.all",
        "default_api:mcp_My_Server_io_delete_all",
        "mcp0_delete.all",
        "delete.all_mcp_My Server.io",
        "delete_all_mcp_My_Server_io",
        "My Server.io____delete.all____mcp",
        "mcp__plugin_office_My_Server_io__delete_all",
        "myserver_io__delete_all",
        "my_server.io_delete.all",
        "MyServerio_deleteall",
        "@My Server.io/delete.all",
        "mcp-My Server.io-delete.all",
        "mcp/My Server.io/delete.all",
        "mcp_My_Server.io__delete.all",
    ],
)
@pytest.mark.parametrize("offered", [True, False])
def test_a_spelling_of_no_table_still_leads_to_what_is_denied_and_is_never_taken_for_seen(name, offered):
    offers = {"My Server.io": ["delete.all", "get"]} if offered else {}
    index = names(["My Server.io"], offers, [("My Server.io", "delete.all")])
    assert ("My Server.io", "delete.all") in found(index, name)
    assert ("My Server.io", "delete.all") not in seen(index, name)


@pytest.mark.parametrize("name", ["WebSearch", "websearch", "Search", "web", "search_web", "mcpwebsearch"])
def test_letters_alone_lead_to_nobody(name):
    index = names(["web"], {"web": ["search_", "Search2", "删除"]}, [("web", "se.arch")])
    assert not {tool for _, tool in found(index, name)} & {"se.arch", "删除"}
