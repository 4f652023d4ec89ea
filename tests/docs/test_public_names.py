"""What the API pages document can be imported under the name that stands there."""

import importlib

import pytest

# Users of the package import these; a name that goes is named in CHANGELOG.md as removed.
PUBLIC = {
    "cg": "BM25Index",
    "cg.bm25": "BM25Index Hits tokenize",
    "cg.verdicts": "Action Counter Decoded Decoder MAX_LABEL MAX_LABELS Reason Status Verdict decode",
    "cg.shape": "Kind Shape content_key describe marker",
    "cg.errors": "CgError",
    "cg.hints": "Catalog order",
    "cg.hints.adapters.pydantic_ai": "tool_search",
    "cg.hints.adapters.tool_references": "ToolReferences",
    "cg.hints.combine": "interleave merge",
    "cg.hints.ordering": "Response order respond",
    "cg.hints.verify": "Answer CheckMemory Outcome Subject subjects verify",
    "cg.hints.request": "Document Hints Request read_request",
    "cg.hints.refusal": "Code Refusal field_path",
    "cg.sweep.config": "Config ConfigError Key describe load preset_values",
    "cg.sweep.drivers": "Sweep",
    "cg.sweep.ledger": "AskLeg AskOutcome AskRow Counts Legs Reason Removed Savings TurnReport ask_row legs_usd savings size_histogram summed",
    "cg.sweep.values": "Branch Ending Identity Payload Pending Phase Removal Thread Usage",
    "cg.sweep.prices": "Entry Price PriceError PriceTable cost_usd",
    "cg.sweep.economics": "Booking ReplyLength accepted_share ask_cost ask_worth learn_ratio learnt_chance net_worth p_cold ping_cost ping_worth repaid saving_when_free turns_left turns_needed units_of verdict_tokens",
    "cg.sweep.counters": "Decline Event",
    "cg.sweep.store": "Expired Limits Store StoreError is_intact stands",
    "cg.sweep.store_memory": "MemoryStore",
    "cg.sweep.store_sqlite": "Configured SqliteStore",
    "cg.sweep.store_redis": "RedisStore",
    "cg.replay": "Report report",
    "cg.replay.reporting.report": "PolicyRow Report SessionRow Skipped report",
    "cg.replay.reporting.answer": "Answer Choice Sureness answer",
    "cg.replay.reporting.figures": "Figures",
    "cg.replay.reporting.sentences": "Advice Lines advice",
    "cg.replay.sessions": "Damaged Session Step find open_all open_sessions",
    "cg.replay.reading": "Call Message Output Recording Turn alone message_of record",
    "cg.replay.policies": "Mask Oracle Policy Replies parse",
    "cg.replay.settings": "Settings",
    "cg.replay.run": "Run Sent run",
    "cg.replay.batch": "Result replay replay_session",
    "cg.replay.row": "Bill Row plus",
    "cg.replay.cache_model": "Breakpoint CacheModel LOOKBACK MIN_TOKENS Part Prompt parts_of prompt_of",
    "cg.gateway.settings": "Key Settings address default_state load state_named",
    "cg.gateway.build": "Gateway build",
    "cg.gateway.transport": "AsyncTransport Transport",
    "cg.gateway.events": "Events Fault Mode Outcome Refusal Route Spend Stage Timer",
}


@pytest.mark.parametrize("module", PUBLIC)
def test_documented_names_are_there(module: str) -> None:
    if module == "cg.gateway.transport":
        pytest.importorskip("httpx2")
    there = importlib.import_module(module)
    assert not [name for name in PUBLIC[module].split() if not hasattr(there, name)]


def test_every_module_of_the_api_pages_is_listed() -> None:
    """The pages and this list are about the same modules."""
    from docsite.api import PAGES

    assert {module for _, _, modules in PAGES.values() for module in modules} <= set(PUBLIC)
