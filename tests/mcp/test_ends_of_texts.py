"""A NUL hides no denied call from shim or gateway: a server in C reads names, keys and methods up to it (cJSON does).

The server that was seen to remove a file for each of these was thirty lines of C over cJSON.
"""

from __future__ import annotations

import json
from typing import Any

import gateway_front
import pytest
import review_front
import shim_front
from agentsh_proxy.shim import traffic

from agentsh_net.core.mcp.gate import BLOCKED
from agentsh_net.core.mcp.skim import Skim

DENIED = {"denied_tools": [{"tool": "rm"}, {"tool": "resources/read"}]}
NAMED = {"name": "rm", "arguments": {}}
CALL = gateway_front.request("tools/call", 1) | {"params": NAMED}
HIDDEN = {
    "method": CALL | {"method": "tools/call\0x"},
    "tool": CALL | {"params": NAMED | {"name": "rm\0x"}},
    "key of the message": {"method\0x": "tools/call"} | CALL | {"method": "ping"},
    "key of the parameters": CALL | {"params": {"name\0": "rm", "name": "ls"}},
    "request to read": CALL | {"method": "resources/read\0x", "params": {"uri": "x:y"}},
    "member of a batch": [CALL | {"method": "ping"}, CALL | {"id": 2, "method": "tools/call\0x"}],
}


def seen_by_cjson(message: Any) -> str:
    """Return a method and a name as such a server reads them: the first key that begins so, up to a NUL."""

    def first(holder: dict[str, Any], key: str) -> str:
        return next((str(v) for k, v in holder.items() if k.partition("\0")[0] == key), "").partition("\0")[0]

    last = message[-1] if isinstance(message, list) else message
    params = next(v for k, v in last.items() if k.partition("\0")[0] == "params")
    return f"{first(last, 'method')} {first(params, 'name')}".strip()


@pytest.mark.parametrize("hidden", HIDDEN)
def test_the_call_is_one_that_such_a_server_runs(hidden: str) -> None:
    assert seen_by_cjson(HIDDEN[hidden]) in {"tools/call rm", "resources/read"}


@pytest.mark.parametrize("hidden", HIDDEN)
def test_the_shim_asks_about_it_and_it_is_refused_and_told(hidden: str) -> None:
    line = json.dumps(HIDDEN[hidden]).encode()
    found = traffic.read(line)
    assert found is None or traffic.judged(found, reading=True)
    assert Skim().of_client(line) in {None, (1, "rm\0x")}  # of which the daemon has not said that it passes
    front = shim_front.Front(**DENIED)
    answer = front.client(front.enter(), line)
    assert answer.forwarded is None
    assert all("error" in reply for reply in answer.replies)
    (event,) = front.told("mcp_message_uninspected")
    assert (event["action"], event["sender"], event["cause"]) == ("block", "client", "hostile")


@pytest.mark.parametrize("hidden", HIDDEN)
def test_the_gateway_refuses_it_and_tells_of_it(hidden: str) -> None:
    front = review_front.Front(**DENIED)
    assert front.client(HIDDEN[hidden]).forward is None
    (event,) = [e for e in front.events if e["type"] == "mcp_message_uninspected"]
    assert (event["action"], event["sender"], event["cause"]) == ("block", "client", "hostile")


def test_a_nul_in_what_a_call_says_is_nobodys_business() -> None:
    call = CALL | {"params": {"name": "ls", "arguments": {"text\0": "a\0b"}}}
    assert review_front.Front(**DENIED).client(call).forward is not None
    refused = review_front.Front(**DENIED).client(CALL).replies
    assert json.loads(refused[0])["error"]["code"] == BLOCKED
