"""Which conversation of a Claude Code log each entry belongs to: the person's own, or a sub-agent's."""

from typing import Any

from cg.replay.recordings.claude_entries import text_or_none

MAIN = ""  # the thread of the person's own conversation; a sub-agent's is named after the agent or its first line


class Threads:
    """The threads of one log. Older clients name no agent: there a thread is a tree, known once all lines were read."""

    def __init__(self) -> None:
        self._agents: dict[str, str] = {}  # agent by line
        self._parents: dict[str, str | None] = {}  # of the lines of agents without a name

    def place(self, entry: dict[str, Any]) -> str | None:
        """Remember where an entry stands; its thread, or None for one that `root` tells later."""
        uuid = entry.get("uuid")
        if entry.get("isSidechain") is not True:
            return MAIN
        agent = text_or_none(entry.get("agentId"))
        if isinstance(uuid, str):
            if agent is not None:
                self._agents.setdefault(uuid, agent)
            else:
                self._parents.setdefault(uuid, text_or_none(entry.get("parentUuid")))
        return agent

    def root(self, uuid: object) -> str:
        """The thread of a line of an agent without a name: the agent it hangs at, or the first line of its tree."""
        at, passed = str(uuid), set[str]()
        while at not in passed:
            passed.add(at)
            parent = self._parents.get(at)
            if parent is None or parent in passed:
                break
            if parent in self._agents:
                return self._agents[parent]
            if parent not in self._parents:
                break
            at = parent
        return at
