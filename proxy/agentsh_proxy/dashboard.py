"""The dashboard: one page without anything from elsewhere. It draws what `/state.json` says, as text, never as markup."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from typing import Final

_STYLE: Final = """
body{font:14px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:64rem;padding:0 1rem;color:#1b1f24;background:#fff}
h1{font-size:1.3rem}h2{font-size:1rem;margin:1.5rem 0 .3rem}table{border-collapse:collapse;width:100%}
td{padding:.15rem .8rem .15rem 0;border-bottom:1px solid #e5e7ea}td:last-child{text-align:right;font-variant-numeric:tabular-nums}
#state{padding:.5rem .8rem;border-radius:.4rem;background:#e7f6ec}#state.bad{background:#fdeaea}
@media(prefers-color-scheme:dark){body{color:#e6e8ea;background:#16181b}td{border-color:#2c3035}#state{background:#143322}#state.bad{background:#4a1d1d}}
"""
_SCRIPT: Final = """
"use strict";
const groups = [["Calls", "agentsh_calls_total"], ["Connections", "agentsh_connections_total"], ["Layers in force", "agentsh_layer_in_force"],
  ["Passed without inspection", "agentsh_uninspected_total"], ["Events lost", "agentsh_events_lost_total"],
  ["DLP finds", "agentsh_dlp_finds_total"], ["DNS gap (s)", "agentsh_dns_gap_seconds"]];
const line = (table, name, value) => {
  const row = table.insertRow(); row.insertCell().textContent = name; row.insertCell().textContent = value;
};
const heading = (root, text) => {
  const h = document.createElement("h2"); h.textContent = text; root.append(h);
  const table = document.createElement("table"); root.append(table); return table;
};
const draw = (state) => {
  const bad = state.problems.length > 0, box = document.getElementById("state");
  box.className = bad ? "bad" : ""; box.textContent = bad ? state.problems.join("; ") : "ready";
  const root = document.createElement("div"), rest = {...state.metrics};
  for (const [title, name] of groups) {
    const samples = rest[name] || []; delete rest[name];
    if (!samples.length) continue;
    const table = heading(root, title);
    for (const [labels, value] of samples) line(table, Object.values(labels).join(" / ") || "all", value);
  }
  const table = heading(root, "Everything else");
  for (const [name, samples] of Object.entries(rest))
    for (const [labels, value] of samples) line(table, name + " " + Object.values(labels).join(" "), value);
  document.getElementById("numbers").replaceChildren(root);
};
const look = async () => {
  try { draw(await (await fetch("state.json", {cache: "no-store"})).json()); }
  catch (error) { draw({problems: ["the daemon does not answer"], metrics: {}}); }
  setTimeout(look, 2000);
};
look();
"""
PAGE: Final = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>agentsh-net</title><meta name="viewport" content="width=device-width">
<style>{_STYLE}</style></head><body><h1>agentsh-net</h1><div id="state">...</div><div id="numbers"></div>
<p><a href="metrics">metrics</a> &middot; <a href="healthz">healthz</a> &middot; <a href="readyz">readyz</a></p>
<script>{_SCRIPT}</script></body></html>
""".encode()


def _hash(text: str) -> str:
    return "'sha256-" + b64encode(sha256(text.encode()).digest()).decode() + "'"


POLICY: Final = (
    f"default-src 'none'; style-src {_hash(_STYLE)}; script-src {_hash(_SCRIPT)}; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
