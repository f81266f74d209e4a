"""A path leads where its reader and the upstream agree that it leads, or nowhere."""

from __future__ import annotations

import pytest

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.web.http_route import api_path, canonical, locate, split_target, unread, upstream_path

PROVIDERS = {"anthropic": "anthropic", "openai": "openai", "corp": "openai"}


def test_a_target_keeps_its_query_as_it_came():
    assert split_target(b"/a/b?x=%2f&y") == (b"/a/b", b"?x=%2f&y", None)


def test_an_absolute_target_is_taken_apart():
    assert split_target(b"http://localhost:1/a?b") == (b"/a", b"?b", b"localhost:1")
    assert split_target(b"HTTPS://localhost") == (b"/", b"", b"localhost")


@pytest.mark.parametrize("target", [b"*", b"localhost:443", b"ftp://a/b", b"http://user@host/"])
def test_a_target_that_names_no_resource_is_refused(target):
    with pytest.raises(ProtocolError):
        split_target(target)


@pytest.mark.parametrize(
    "path",
    [
        b"//v1//messages", b"/anthropic//v1/messages", b"/a/../b", b"/a/./b", b"/a/..", b"/a\\b", b"/a/%2e%2e/b", b"/a/.%2E/b",
        b"/a/%2f/b", b"/a%2f%2fb", b"/a%5cb", b"/a%255cb", b"/a%00b", b"/a/%252e%252e/b", b"/a/..;x/b",
    ],
)  # fmt: skip
def test_a_path_that_readers_could_split_differently_is_refused(path):
    with pytest.raises(ProtocolError) as caught:
        canonical(path)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    "path",
    [
        b"/v1/messages",
        b"/V1/Messages",
        b"/v1/messages/",
        b"/v1%2fmessages",
        b"/v1/%6dessages",
        b"/v1/%256dessages",
        b"/v1/messages;a=b",
        b"/v1/messages%23x",
        b"/v1/messages%20",
    ],
)
def test_every_spelling_of_a_path_has_one_canonical_form(path):
    assert canonical(path) == "/v1/messages"


@pytest.mark.parametrize(
    ("path", "route"),
    [
        (b"/anthropic/v1/messages", ("", "anthropic", b"/v1/messages")),
        (b"/s/tok/openai/v1/models", ("tok", "openai", b"/v1/models")),
        (b"/s/tok/v1/messages", ("tok", "anthropic", b"/v1/messages")),
        (b"/v1/messages", ("", "anthropic", b"/v1/messages")),
        (b"/v1/messages/count_tokens", ("", "anthropic", b"/v1/messages/count_tokens")),
        (b"/v1/chat/completions", ("", "openai", b"/v1/chat/completions")),
        (b"/corp", ("", "corp", b"/")),
    ],
)
def test_a_path_leads_to_its_provider(path, route):
    assert locate(path, PROVIDERS) == route


@pytest.mark.parametrize("path", [b"/", b"/nobody/v1", b"/v1", b"/v1/messagesx", b"/s/", b"/s/tok"])
def test_an_unknown_path_is_told_what_is_known(path):
    with pytest.raises(ProtocolError) as caught:
        locate(path, PROVIDERS)
    assert caught.value.status == 404
    assert "/anthropic/, /corp/, /openai/" in str(caught.value)


def test_the_bare_responses_path_goes_to_the_provider_of_its_dialect():
    assert locate(b"/v1/responses", PROVIDERS).provider == locate(b"/v1/chat/completions", PROVIDERS).provider
    assert locate(b"/v1/responses/resp_1", {"mine": "openai"}).provider == "mine"


def test_a_bare_path_goes_to_whoever_speaks_the_dialect():
    assert locate(b"/v1/interactions", {"mine": "gemini"}).provider == "mine"
    assert locate(b"/v1beta/interactions/i1", {"mine": "gemini"}).provider == "mine"
    assert locate(b"/v1/messages", {"mine": "anthropic"}).provider == "mine"
    with pytest.raises(ProtocolError, match="no provider speaks"):
        locate(b"/v1/messages", {"mine": "openai"})


@pytest.mark.parametrize(
    ("base", "rest", "path"),
    [
        (b"", b"/v1/messages", b"/v1/messages"),
        (b"/", b"/v1/messages", b"/v1/messages"),
        (b"/v1", b"/v1/chat/completions", b"/v1/chat/completions"),
        (b"/v1/", b"/chat/completions", b"/v1/chat/completions"),
        (b"/openai/v1", b"/v1/models", b"/openai/v1/models"),
        (b"/openai", b"/v1/models", b"/openai/v1/models"),
        (b"/v1", b"/v1", b"/v1"),
        (b"/v1", b"/v1beta/x", b"/v1/v1beta/x"),
        (b"/team", b"/team/x", b"/team/team/x"),
    ],
)
def test_a_base_path_is_kept_and_a_version_stands_once(base, rest, path):
    assert upstream_path(base, rest) == path


UNREAD = [
    ("POST", "/openai/v1/threads/runs"),
    ("GET", "/openai/v1/threads/t/runs/r"),
    ("GET", "/openai/v1/threads/t/runs/r/steps"),
    ("POST", "/openai/v1/threads/t/runs/r/submit_tool_outputs"),
    ("POST", "/openai/openai/threads/t/runs"),
    ("POST", "/g/v1beta/models/gemini-2:batchgeneratecontent"),
    ("GET", "/g/v1beta/batches/b1"),
    ("GET", "/g/v1beta/batches"),
    ("POST", "/g/v1beta/interactions"),
    ("GET", "/g/v1beta/interactions/i1"),
    ("POST", "/g/v1beta/interactions/i1/cancel"),
    ("POST", "/g/v1beta/triggers/t/executions"),
    ("POST", "/g/v1alpha/auth_tokens"),
    ("POST", "/g/v1/projects/p/locations/l/publishers/mistralai/models/m:rawpredict"),
    ("POST", "/b/model/m/invoke-with-bidirectional-stream"),
    ("POST", "/b/agents/a/agentaliases/b/sessions/c/text"),
    ("POST", "/b/agents/s"),
    ("POST", "/b/runtimes/arn:aws:x/y/invocations"),
    ("POST", "/b/harnesses/invoke"),
    ("POST", "/anthropic/v1/agents"),
    ("POST", "/anthropic/v1/sessions"),
    ("GET", "/anthropic/v1/sessions/s/events/stream"),
    ("POST", "/openai/v1/agents/sessions"),
    ("GET", "/openai/v1/agents/sessions/s/items"),
    ("GET", "/openai/v1/chatkit/threads/t/items"),
    ("POST", "/openai/v1/chatkit/sessions"),
    ("POST", "/openai/v1/evals/e/runs"),
    ("GET", "/openai/v1/evals/e/runs/r/output_items"),
    ("POST", "/openai/v1/realtime/client_secrets"),
    ("POST", "/openai/v1/realtime/sessions"),
    ("POST", "/openai/v1/realtime/calls"),
    ("POST", "/openai/v1/realtime/calls/c/accept"),
    ("POST", "/openai/v1/live/sessions"),
    ("POST", "/openai/v1/batches"),
    ("POST", "/mistral/v1/batch/jobs"),
    ("POST", "/mistral/v1/audio/sessions"),
    ("POST", "/mistral/v1/client/sessions"),
    ("POST", "/mistral/v1/connectors/gh/tools/search/call"),
    ("POST", "/g/v1/projects/p/locations/l/batchpredictionjobs"),
    ("POST", "/g/v1beta1/batchpredictionjobs"),
]


@pytest.mark.parametrize(("method", "path"), UNREAD)
def test_known_endpoints_with_calls_nobody_reads_are_known(method, path):
    assert unread(method, path)
    assert not unread("DELETE", path)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/openai/v1/responses"),
        ("POST", "/g/v1beta/models/gemini-2:streamgeneratecontent"),
        ("POST", "/g/v1beta/models/gemini-2:counttokens"),
        ("POST", "/o/api/chat"),
        ("POST", "/b/model/m/converse"),
        ("GET", "/anthropic/v1/messages/batches/b1"),
        ("GET", "/anthropic/v1/messages/batches"),
        ("POST", "/anthropic/v1/messages/count_tokens"),
        ("POST", "/anthropic/v1/messages/batches/b1/cancel"),
        ("GET", "/anthropic/v1/files"),
        ("GET", "/anthropic/v1/skills"),
        ("GET", "/openai/v1/models"),
        ("POST", "/openai/v1/embeddings"),
        ("POST", "/openai/v1/files"),
        ("GET", "/openai/v1/batches"),
        ("GET", "/openai/v1/batches/b"),
        ("POST", "/openai/v1/batches/b/cancel"),
        ("GET", "/mistral/v1/batch/jobs"),
        ("POST", "/mistral/v1/batch/jobs/j/cancel"),
        ("POST", "/mistral/v1/connectors"),
        ("GET", "/mistral/v1/connectors/gh/tools"),
        ("POST", "/openai/v1/assistants"),
        ("GET", "/openai/v1/threads/t/messages"),
        ("POST", "/openai/v1/threads"),
        ("POST", "/openai/v1/conversations"),
        ("POST", "/openai/v1/audio/transcriptions"),
        ("POST", "/openai/v1/vector_stores/v/search"),
    ],
)
def test_all_other_endpoints_are_not(method, path):
    assert not unread(method, path)


@pytest.mark.parametrize(
    ("base", "rest", "path"),
    [
        (b"", b"/v1/sessions", b"/v1/sessions"),
        (b"/v1", b"/sessions", b"/v1/sessions"),
        (b"/v1", b"/v1/sessions", b"/v1/sessions"),
        (b"/agents/v1", b"/models", b"/v1/models"),
        (b"/agents", b"/v1/models", b"/v1/models"),
        (b"/agents/", b"/models", b"/models"),
    ],
)
def test_an_endpoint_is_known_by_what_stands_behind_a_gateways_own_names(base, rest, path):
    assert api_path(base, rest) == path
