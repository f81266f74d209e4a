"""The malicious texts of the demonstration are what our detectors find, and the honest ones are not; the secret is found by its shape."""

from __future__ import annotations

import pytest

from agentsh_net.core.inspect.contents import inspect_content
from agentsh_net.core.inspect.definitions import inspect_definition
from agentsh_net.core.inspect.findings import worst
from agentsh_net.demo import cast


@pytest.mark.parametrize(
    "text",
    [cast.READ_FILE, cast.DELETE_FILE, cast.SEND_EMAIL, cast.ADD, cast.FETCH_PAGE, cast.PAY, cast.UPLOAD],
)
def test_nothing_is_found_in_an_honest_description(text: str) -> None:
    assert inspect_definition({"name": "tool", "description": text}) == ()


def test_a_poisoned_description_and_a_poisoned_page_are_critical() -> None:
    assert worst(inspect_definition({"name": "tool", "description": cast.QUOTE_POISONED})) == "critical"
    assert worst(inspect_content({"content": [{"type": "text", "text": cast.PAGE}]})) == "critical"


def test_the_pulled_rug_is_no_matter_of_detectors_so_that_it_is_the_pin_which_stops_it() -> None:
    found = inspect_definition({"name": "add", "description": cast.ADD_PULLED})
    assert worst(found) in {"", "low", "medium"}


def test_every_server_has_an_address_of_its_own_on_the_wire() -> None:
    assert len({*cast.ADDRESSES.values(), cast.HERE}) == len(cast.ADDRESSES) + 1
    assert cast.url(cast.MAIL) == f"http://{cast.ADDRESSES[cast.MAIL]}:8000/mcp"
    assert cast.provider_url().endswith(f"{cast.ADDRESSES[cast.PROVIDER]}:8000")
