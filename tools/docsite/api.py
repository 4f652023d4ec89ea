"""The API reference: which modules it holds, and the directives that take their docstrings."""

from importlib.util import find_spec

# page: title, what is there, modules in reading order
PAGES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "bm25": ("BM25", "An exact index over texts, immutable, safe to query from any number of threads.", ("cg.bm25",)),
    "hints": (
        "Hints",
        "What `cg-hints` does, without the command: a request, its order, and candidates that are checked in turn.",
        (
            "cg.hints.request",
            "cg.hints.ordering",
            "cg.hints.combine",
            "cg.hints.verify",
            "cg.hints.refusal",
            "cg.hints.adapters.pydantic_ai",
            "cg.hints.adapters.tool_references",
        ),
    ),
    "verdicts": ("Verdicts", "What a model's reply says about tool outputs.", ("cg.verdicts",)),
    "shape": ("Shape", "What kind of text an output was, in numbers and a name from a closed list.", ("cg.shape",)),
    "sweep": (
        "Sweep",
        "One request through the policy, whatever drives it: the values, the drivers, the store that remembers.",
        (
            "cg.sweep.config",
            "cg.sweep.drivers",
            "cg.sweep.ledger",
            "cg.sweep.values",
            "cg.sweep.prices",
            "cg.sweep.economics",
            "cg.sweep.store",
            "cg.sweep.store_memory",
            "cg.sweep.store_sqlite",
            "cg.sweep.store_redis",
        ),
    ),
    "replay": (
        "Replay",
        "Recorded sessions, priced under a policy.",
        (
            "cg.replay.reporting.report",
            "cg.replay.reporting.answer",
            "cg.replay.reporting.figures",
            "cg.replay.reporting.sentences",
            "cg.replay.sessions",
            "cg.replay.reading",
            "cg.replay.policies",
            "cg.replay.settings",
            "cg.replay.run",
            "cg.replay.batch",
            "cg.replay.row",
            "cg.replay.cache_model",
        ),
    ),
    "gateway": (
        "Gateway",
        "The sweep before the live API, in this process or in one of its own.",
        ("cg.gateway.settings", "cg.gateway.build", "cg.gateway.transport", "cg.gateway.events"),
    ),
    "errors": ("Errors", "What is raised.", ("cg.errors",)),
}


def pages() -> dict[str, str]:
    """The pages in Markdown, by their place in docs/."""
    made = {f"reference/api-{name}.md": page(*said) for name, said in PAGES.items()}
    return {name: text for name, text in made.items() if text}


def page(title: str, what: str, modules: tuple[str, ...]) -> str:
    """One page; a module that this version does not have is left out."""
    lines = [f"# {title}\n", f"{what}\n"]
    for module in modules:
        if find_spec(module) is not None:
            lines += [f"## `{module}`\n", "```{eval-rst}", f".. automodule:: {module}", *OPTIONS, "```\n"]
    return "\n".join(lines)


OPTIONS = ("   :members:", "   :inherited-members: str, int, object, Exception, BaseException")
