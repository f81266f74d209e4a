"""At a shared endpoint names decide only where a client must say them; what has no name follows the operator's word."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from agentsh_net.core.configuration.settings import Network
from agentsh_net.core.model import Server, Transport
from agentsh_net.core.network import shared_endpoints
from agentsh_net.core.network.addresses import canonical
from agentsh_net.core.network.plane import Endpoint, Fate, Name, Plan, Rule


def server(server_id: str, url: str) -> Server:
    scheme, _, rest = url.partition("://")
    host, _, port = rest.partition(":")
    return Server(
        server_id, Transport.HTTP, url=url, host=host, port=int(port or {"https": 443}.get(scheme, 80))
    )


EVIL, GOOD = server("evil", "https://evil.test"), server("good", "https://good.test")
PLAIN, LITERAL = server("plain", "http://plain.test"), server("literal", "https://10.0.0.1")


@pytest.mark.parametrize(
    ("shared", "unknown", "denied", "fate"),
    [
        ("block", "tag", [EVIL], Fate.DENY),
        ("tag", "block", [EVIL], Fate.TAG),
        ("sni", "block", [EVIL], Fate.SNI),
        ("sni", "tag", [EVIL], Fate.SNI_OPEN),
        ("sni", "tag", [EVIL, PLAIN], Fate.SNI),
        ("sni", "tag", [LITERAL], Fate.SNI),
    ],
)
def test_a_denied_server_that_nobody_names_is_refused_with_all_that_is_unknown(
    shared: str, unknown: str, denied: list[Server], fate: Fate
) -> None:
    assert shared_endpoints.fate(Network(on_shared_address=shared, on_unknown_sni=unknown), denied) is fate


def test_a_name_that_servers_have_in_common_is_denied_where_one_of_them_is() -> None:
    other = server("other", "https://evil.test:8443")
    twin = server("twin", "https://evil.test")
    names = shared_endpoints.names([EVIL, GOOD, PLAIN, LITERAL, other, twin], {"evil"})
    assert names == {
        Name("evil.test", 443): Fate.DENY,
        Name("evil.test", 8443): Fate.TAG,
        Name("good.test"): Fate.TAG,
    }
    assert shared_endpoints.names([EVIL, other], {"evil", "other"}) == {Name("evil.test"): Fate.DENY}


def test_the_names_that_a_denied_server_was_found_by_are_its_own_unless_they_are_somebody_elses() -> None:
    aliases = {
        "evil": {"pool.test", "good.test", "both.test", "provider.test", "plain.test"},
        "good": {"both.test", "goods.test"},
    }
    names = shared_endpoints.names(
        [EVIL, GOOD, PLAIN], {"evil"}, aliases, spared=["provider.test", "plain.test"]
    )
    assert names == {
        Name("evil.test"): Fate.DENY,
        Name("good.test"): Fate.TAG,
        Name("pool.test"): Fate.DENY,
    }


def at(port: int) -> Endpoint:
    return Endpoint(canonical(ip_address("10.0.0.2")), port)


RULES = {
    at(0): Rule(Fate.SNI_OPEN, ("evil", "good"), shared=True),
    at(443): Rule(Fate.SNI, ("evil", "good"), shared=True),
    at(444): Rule(Fate.SNI_OPEN, ("evil", "good"), shared=True),
    at(445): Rule(Fate.DENY, ("evil",)),
}
PLAN = Plan(3, RULES, 1, 1, names={Name("evil.test"): Fate.DENY})


def test_a_layer_that_reads_no_names_leaves_them_to_one_that_does_or_takes_each_for_unknown() -> None:
    left = shared_endpoints.without_names(PLAN, read_elsewhere=True)
    assert left == Plan(3, {at(445): RULES[at(445)]}, 1, 1)
    alone = shared_endpoints.without_names(PLAN, read_elsewhere=False)
    assert {e.port: r.fate for e, r in alone.rules.items()} == {443: Fate.DENY, 444: Fate.TAG, 445: Fate.DENY}
    plain = Plan(3, {at(445): RULES[at(445)]})
    assert shared_endpoints.without_names(plain, read_elsewhere=False) is plain


def test_what_such_a_layer_does_is_told() -> None:
    assert shared_endpoints.told_of(PLAN, read_elsewhere=True).startswith(
        "2 shared endpoints are left to the ebpf layer"
    )
    assert shared_endpoints.told_of(PLAN, read_elsewhere=False).endswith("1 refused whole, 1 only tagged")
    assert shared_endpoints.told_of(Plan(), read_elsewhere=False) == ""


def test_a_name_at_a_port_means_the_servers_declared_there_or_all_of_that_name() -> None:
    other = server("other", "https://evil.test:8443")
    assert shared_endpoints.spoken_for([EVIL, other, PLAIN], "evil.test", 8443) == ("other",)
    assert shared_endpoints.spoken_for([EVIL, other, PLAIN], "evil.test", 9000) == ("evil", "other")
    assert shared_endpoints.spoken_for([EVIL, PLAIN], "plain.test", 80) == ()
