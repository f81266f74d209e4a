"""One target under atheris: `under_atheris.py TARGET CORPUS [libFuzzer's options]`. `run` starts it for each target in turn."""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["agentsh_net", "agentsh_proxy"], enable_loader_override=False):
    from fuzz.targets import FOUND, TARGETS, seeds


def main() -> None:
    target, corpus = sys.argv[1], Path(sys.argv[2])
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(
        [*seeds(target), *(path.read_bytes() for path in FOUND.glob(f"{target}-*"))]
    ):
        (corpus / f"seed{number:03}").write_bytes(seed)
    atheris.Setup([sys.argv[0], str(corpus), *sys.argv[3:]], TARGETS[target])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
