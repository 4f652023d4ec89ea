#!/usr/bin/env python3
"""Run one real Python client for the session of `scripts.lookups`; prints JSON: its answer, its history, its error.

    python_client.py NAME BASE_URL

NAME: sdk | sdk-stream (plain calls) | runner | runner-full | runner-stream (tool runner; server-held threads but for
`-full`) | langchain | langchain-stream | litellm | pydantic-ai
Needs: anthropic, langchain-anthropic with langgraph, litellm, pydantic-ai-slim[anthropic].
"""

import json
import logging
import os
import sys
import warnings

MODEL, SYSTEM, ASK = "claude-sonnet-5", "You inspect record sets.", "Inspect all sets."
MAX_STEPS = 40
TOOL = {
    "name": "lookup",
    "description": "Look up one record set.",
    "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
}


def lookup_text(n):
    """The caller's tool: 120 lines, or an error for set 6."""
    if n == 6:
        raise ValueError("no such record set 6")
    return "\n".join(f"{n:02d}:{k:03d} record value={k * n}" for k in range(120))


def answered(call):
    """A tool_result for a call, an error where the tool is unknown or fails."""
    block = {"type": "tool_result", "tool_use_id": call["id"]}
    try:
        if call["name"] != "lookup":
            raise KeyError(f"unknown tool {call['name']}")
        return {**block, "content": lookup_text(call["input"]["n"])}
    except (KeyError, ValueError) as error:
        return {**block, "content": f"error: {error}", "is_error": True}


def run_sdk(url, name):
    """Plain calls: the whole history each time, breakpoints set by the caller."""
    import anthropic

    client = anthropic.Anthropic(api_key="dummy", base_url=url)
    messages = [{"role": "user", "content": ASK}]
    for _ in range(MAX_STEPS):
        request = {
            "model": MODEL,
            "max_tokens": 1000,
            "system": SYSTEM,
            "tools": [TOOL],
            "messages": messages,
            "cache_control": {"type": "ephemeral"},
        }
        if name == "sdk-stream":
            with client.messages.stream(**request) as stream:
                reply = stream.get_final_message()
        else:
            reply = client.messages.create(**request)
        content = [block.model_dump(exclude_none=True) for block in reply.content]
        messages.append({"role": "assistant", "content": content})
        calls = [block for block in content if block["type"] == "tool_use"]
        if not calls:
            return reply.content[0].text, messages
        messages.append({"role": "user", "content": [answered(call) for call in calls]})
    raise RuntimeError("no end")


def run_runner(url, name):
    import anthropic

    @anthropic.beta_tool
    def lookup(n: int) -> str:
        """Look up one record set.

        Args:
            n: the number of the set
        """
        return lookup_text(n)

    more = {"stream": True} if name == "runner-stream" else {}
    if name == "runner-full":
        more["thread"] = False
    client = anthropic.Anthropic(api_key="dummy", base_url=url)
    runner = client.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=1000,
        tools=[lookup],
        system=SYSTEM,
        cache_control={"type": "ephemeral"},
        messages=[{"role": "user", "content": ASK}],
        **more,
    )
    return runner.until_done().content[0].text, None


def run_langchain(url, name):
    from langchain_anthropic import ChatAnthropic
    from langchain_core.tools import tool
    from langgraph.prebuilt import ToolNode, create_react_agent

    @tool
    def lookup(n: int) -> str:
        """Look up one record set."""
        return lookup_text(n)

    model = ChatAnthropic(
        model=MODEL, base_url=url, api_key="dummy", max_tokens=1000, streaming=name.endswith("stream")
    )
    graph = create_react_agent(model, ToolNode([lookup], handle_tool_errors=True), prompt=SYSTEM)
    out = graph.invoke({"messages": [("user", ASK)]}, {"recursion_limit": 100})
    history = [{"type": m.type, "content": m.content, "calls": getattr(m, "tool_calls", None)} for m in out["messages"]]
    return out["messages"][-1].content, history


def run_litellm(url, name):
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    function = {"name": TOOL["name"], "description": TOOL["description"], "parameters": TOOL["input_schema"]}
    system = [{"type": "text", "text": SYSTEM, "cache_control": {"type": "ephemeral"}}]
    messages = [{"role": "system", "content": system}, {"role": "user", "content": ASK}]
    for _ in range(MAX_STEPS):
        reply = litellm.completion(
            model="anthropic/" + MODEL,
            api_base=url,
            api_key="dummy",
            messages=messages,
            tools=[{"type": "function", "function": function}],
            max_tokens=1000,
            cache_control_injection_points=[{"location": "message", "index": -1}],
        )
        message = reply.choices[0].message
        messages.append(message.model_dump())
        if not message.tool_calls:
            return message.content, messages
        for call in message.tool_calls:
            arguments = {"id": call.id, "name": call.function.name, "input": json.loads(call.function.arguments)}
            messages.append({"role": "tool", "tool_call_id": call.id, "content": answered(arguments)["content"]})
    raise RuntimeError("no end")


def run_pydantic(url, name):
    from pydantic_ai import Agent, ModelRetry
    from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
    from pydantic_ai.providers.anthropic import AnthropicProvider

    model = AnthropicModel(MODEL, provider=AnthropicProvider(api_key="dummy", base_url=url))
    settings = AnthropicModelSettings(
        max_tokens=1000,
        anthropic_cache_instructions=True,
        anthropic_cache_tool_definitions=True,
        anthropic_cache_messages=True,
    )
    agent = Agent(model, system_prompt=SYSTEM, retries=2, model_settings=settings)

    @agent.tool_plain
    def lookup(n: int) -> str:
        """Look up one record set."""
        try:
            return lookup_text(n)
        except ValueError as error:
            raise ModelRetry(str(error)) from error

    result = agent.run_sync(ASK)
    history = [
        [(part.part_kind, getattr(part, "content", None), getattr(part, "args", None)) for part in message.parts]
        for message in result.all_messages()
    ]
    return result.output, history


RUN = {
    "sdk": run_sdk,
    "sdk-stream": run_sdk,
    "runner": run_runner,
    "runner-full": run_runner,
    "runner-stream": run_runner,
    "langchain": run_langchain,
    "langchain-stream": run_langchain,
    "litellm": run_litellm,
    "pydantic-ai": run_pydantic,
}


def main():
    warnings.simplefilter("ignore")  # what the libraries say on the way is not the answer
    logging.disable(logging.CRITICAL)
    name, url = sys.argv[1:]
    answer, history, error = None, None, None
    try:
        answer, history = RUN[name](url, name)
    except ImportError as missing:
        print(json.dumps({"missing": str(missing)}))
        return 3
    except Exception as failed:
        error = f"{type(failed).__name__}: {failed}"
    print(json.dumps({"answer": answer, "history": history, "error": error}, default=str))
    return 0


if __name__ == "__main__":
    sys.exit(main())
