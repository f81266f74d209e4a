"""The house rules hold: core is pure, every source file has its test file, and nothing is unreachable from the CLI."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = {"agentsh_net": ROOT / "agentsh_net", "agentsh_proxy": ROOT / "proxy" / "agentsh_proxy"}
CORE = sorted((ROOT / "agentsh_net" / "core").rglob("*.py"))

# What IO, clocks and randomness look like as a call or an attribute; imports are import-linter's business.
IMPURE_CALLS = {"open", "print", "input", "exec", "eval", "compile", "breakpoint"}


def sources() -> Iterator[tuple[str, Path]]:
    for package, folder in PACKAGES.items():
        for path in sorted(folder.rglob("*.py")):
            parts = (package, *path.relative_to(folder).with_suffix("").parts)
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


MODULES = dict(sources())


@pytest.mark.parametrize("path", CORE, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_core_computes_and_does_nothing_else(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        assert not isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.Global), f"line {node.lineno}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in IMPURE_CALLS, f"line {node.lineno}: {node.func.id}()"
        ours = {name for name in imported(node) if name.startswith("agentsh_")} - {"agentsh_net.__version__"}
        assert all(name.startswith("agentsh_net.core.") for name in ours), f"line {node.lineno}: {ours}"


def imported(node: ast.AST) -> list[str]:
    """Return the dotted names that a statement imports."""
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{name.name}" for name in node.names]
    return [name.name for name in node.names] if isinstance(node, ast.Import) else []


def test_every_dependency_is_imported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {re.split(r"[<>=]", line)[0] for line in project["dependencies"]}
    given = packages_distributions()
    nodes = [node for path in MODULES.values() for node in ast.walk(ast.parse(path.read_text()))]
    tops = {name.partition(".")[0] for node in nodes for name in imported(node)}
    assert declared - {owner.lower() for top in tops for owner in given.get(top, ())} == set()


def mirrored_test(module: str, path: Path) -> Path:
    if module.startswith("agentsh_net"):
        relative = path.relative_to(PACKAGES["agentsh_net"])
        return ROOT / "tests" / relative.parent / f"test_{path.stem}.py"
    relative = path.relative_to(PACKAGES["agentsh_proxy"])
    return ROOT / "tests" / "agentsh_proxy" / relative.parent / f"test_{path.stem}.py"


def has_code(path: Path) -> bool:
    body = ast.parse(path.read_text()).body
    return any(isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.If) for n in body)


@pytest.mark.parametrize(("module", "path"), [m for m in MODULES.items() if has_code(m[1])], ids=str)
def test_every_source_file_has_its_test_file(module: str, path: Path) -> None:
    test = mirrored_test(module, path)
    if path.stem == "__main__":
        return
    assert test.exists(), f"{path.relative_to(ROOT)} wants {test.relative_to(ROOT)}"
    doc = ast.get_docstring(ast.parse(test.read_text()))
    assert doc, f"{test.relative_to(ROOT)} does not state its claim in a docstring"


def imports_of(module: str, path: Path) -> set[str]:
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, base] if base else parents)
            found |= {base} | {f"{base}.{a.name}" for a in node.names}
    return found & MODULES.keys()


# Where production enters: the console script, and `python -m agentsh_proxy`, which the daemon starts.
ENTRANCES = ("agentsh_net.cli.main", "agentsh_net.__main__", "agentsh_proxy.__main__")


def test_every_module_is_reached_from_an_entrance() -> None:
    graph = {module: imports_of(module, path) for module, path in MODULES.items()}
    for module, path in MODULES.items():  # the CLI loads its command groups by name, to start fast
        if module.startswith("agentsh_net.cli"):
            text = path.read_text()
            graph[module] |= {m for m in MODULES if f'"{m}"' in text or f'"{m}:' in text}
    seen: set[str] = set()
    queue = [e for e in ENTRANCES if e in MODULES]
    assert len(queue) == len(ENTRANCES)
    while queue:
        module = queue.pop()
        if module not in seen:
            seen.add(module)
            parents = module.split(".")
            queue += graph[module] | (
                {".".join(parents[:i]) for i in range(1, len(parents))} & MODULES.keys()
            )
    assert not sorted(MODULES.keys() - seen)


def test_no_module_outgrows_its_room() -> None:
    too_big = {
        p.relative_to(ROOT).as_posix(): n
        for _, p in sources()
        if (n := len(p.read_text().splitlines())) > 400
    }
    assert not too_big, "past 400 lines there is a second noun in the file"


# What the formatter leaves of a remark at the end of a line that is too long with it.
TORN_REMARK = re.compile(r"^\s*[])}]+(| as \w+:| = \S+)[:,]?  # (?!fmt: skip|type: |noqa)", re.MULTILINE)


def test_no_remark_stands_behind_a_lone_bracket() -> None:
    sources = [path for folder in ("agentsh_net", "proxy", "tests") for path in (ROOT / folder).rglob("*.py")]
    torn = [path.relative_to(ROOT).as_posix() for path in sources if TORN_REMARK.search(path.read_text())]
    assert not torn, "put the remark above the line that it belongs to"
