"""The adapters, with the libraries that they are for."""

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from cg.hints.adapters.pydantic_ai import tool_search
from cg.hints.adapters.tool_references import ToolReferences

VERBS, OBJECTS = ("create", "cancel", "list", "rename", "archive"), ("invoice", "meeting", "truck", "letter")
NAMES = [f"{verb}_{thing}" for verb in VERBS for thing in OBJECTS]


def definition(name: str) -> dict[str, Any]:
    return {"name": name, "description": name.replace("_", " a "), "input_schema": {"type": "object", "properties": {}}}


def test_adapters_load_no_library_and_no_table_unasked() -> None:
    program = (
        "import sys, cg.hints.adapters.pydantic_ai, cg.hints.adapters.tool_references\n"
        "print([n for n in sys.modules if n in ('pydantic_ai', 'anthropic', 'numpy', 'cg.hints.producer', 'asyncio')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_an_agent_of_pydantic_ai_finds_a_deferred_tool_and_calls_it() -> None:
    """The model sees the search alone, then what was found; a tool past the limit stays unseen."""
    library = pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")
    from pydantic_ai.capabilities import ToolSearch
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    seen: list[list[str]] = []
    called: list[str] = []

    def model(_messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(sorted(tool.name for tool in info.function_tools))
        if len(seen) == 1:
            return ModelResponse(parts=[ToolCallPart("search_tools", {"queries": ["cancelling invoices"]})])
        if len(seen) == 2:
            return ModelResponse(parts=[ToolCallPart("cancel_invoice", {})])
        return ModelResponse(parts=[TextPart("done")])

    def made(name: str) -> Any:
        def run() -> str:
            called.append(name)
            return name

        return library.Tool(run, name=name, description=name.replace("_", " a "), defer_loading=True)

    agent = library.Agent(
        FunctionModel(model),
        tools=[made(name) for name in NAMES],
        capabilities=[ToolSearch(strategy=tool_search(limit=2))],
    )
    assert asyncio.run(agent.run("please cancel the invoice")).output == "done"
    assert called == ["cancel_invoice"]
    assert "cancel_invoice" in seen[1] and len(set(seen[1]) & set(NAMES)) == 2 and not set(seen[0]) & set(NAMES)


def test_other_tools_in_the_next_step_are_indexed_anew() -> None:
    class Definition:
        def __init__(self, name: str) -> None:
            self.name, self.description = name, None
            self.parameters_json_schema: dict[str, Any] = {}

    search = tool_search(limit=1)
    assert search(None, ["cancel", "meeting"], [Definition(name) for name in NAMES]) == ["cancel_meeting"]
    assert search(None, ["cancel meeting"], [Definition("list_truck")]) == ["list_truck"]
    assert search(None, ["cancel meeting"], []) == []


def test_references_name_deferred_tools_only_and_the_sdk_sends_them_as_they_are() -> None:
    own = {"type": "bash_20250124", "name": "bash"}
    search = ToolReferences(
        [own, *map(definition, NAMES)], loaded=["list_truck"], permit=lambda name: name != "archive_letter", limit=3
    )
    deferred = [tool["name"] for tool in search.tools if tool.get("defer_loading")]
    assert deferred == [name for name in NAMES if name not in ("list_truck", "archive_letter")]
    assert (
        search.tools[0]["name"] == "search_tools" and own in search.tools and definition("list_truck") in search.tools
    )
    result = search.result("toolu_1", {"query": "rename the truck"})
    assert (result["type"], result["tool_use_id"]) == ("tool_result", "toolu_1")
    assert (
        result["content"][0] == {"type": "tool_reference", "tool_name": "rename_truck"} and len(result["content"]) == 3
    )
    for query in ("archive a letter", "list truck"):
        named = {block["tool_name"] for block in search.result("t", {"query": query})["content"]}
        assert not named & {"archive_letter", "list_truck", "bash", "search_tools"}


def test_the_sdks_own_types_take_the_blocks() -> None:
    pytest.importorskip("anthropic", reason="anthropic is not installed")
    from anthropic.types import MessageParam, ToolReferenceBlockParam, ToolUnionParam
    from pydantic import TypeAdapter

    search = ToolReferences(map(definition, NAMES))
    result = search.result("toolu_1", {"query": "rename the truck"})
    for block in result["content"]:
        assert TypeAdapter(ToolReferenceBlockParam).validate_python(block, strict=True) == block
    TypeAdapter(list[ToolUnionParam]).validate_python(search.tools)
    TypeAdapter(MessageParam).validate_python({"role": "user", "content": [result]})


@pytest.mark.parametrize("wrong", [{}, {"query": 3}, {"query": "x" * 9000}])
def test_an_input_that_is_no_query_is_an_error_for_the_model(wrong: dict[str, Any]) -> None:
    assert ToolReferences([definition("a")]).result("t", wrong)["is_error"] is True


def test_a_tool_named_like_the_search_is_refused_and_an_empty_search_says_so() -> None:
    with pytest.raises(ValueError, match="search_tools"):
        ToolReferences([definition("search_tools")])
    assert ToolReferences([]).result("t", {"query": "x"})["content"] == "there are no more tools"
