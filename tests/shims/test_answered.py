"""What a shim says of answered requests is read strictly, and an error that answers none is an answer too."""

from __future__ import annotations

from typing import Any

import pytest

from agentsh_net.core.links.shim_link import LinkError
from agentsh_net.core.mcp import jsonrpc
from agentsh_net.shims.answered import AnsweredRequest, answered_request, unasked


@pytest.mark.parametrize("id_", [7, "7"])
def test_a_request_keeps_the_type_of_its_id(id_: Any) -> None:
    assert answered_request([0, id_, "tools/list", True, ""]) == AnsweredRequest(
        0, id_, "tools/list", continues=True, tool=""
    )


@pytest.mark.parametrize(
    "item", [None, [], [-1, 7, "m", True, ""], [0, None, "m", True, ""], [0, 7, "m", 1, ""]]
)
def test_what_is_no_request_is_refused(item: Any) -> None:
    with pytest.raises(LinkError, match="none"):
        answered_request(item)


def test_an_error_without_an_id_answers_nobody() -> None:
    body = jsonrpc.parse(
        b'[{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"a"}},'
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"b"}}]'
    )
    assert [(ask.index, ask.id, message.message) for ask, message in unasked(body)] == [(1, None, "b")]
