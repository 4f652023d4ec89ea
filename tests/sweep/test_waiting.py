"""Drops that were judged and wait: what still counts for them when their moment comes."""

from sessions import COLD_AFTER_S, LONG, Client, history, request

from cg.sweep.config import Config
from cg.sweep.ledger import Reason
from cg.sweep.store_memory import MemoryStore
from cg.sweep.transcript import read
from cg.sweep.values import Pending, Usage


def test_the_floor_is_not_asked_again_of_what_was_judged() -> None:
    """A ratio learnt between verdict and application makes outputs smaller in tokens; the verdict stands all the same."""
    store = MemoryStore()
    client = Client(store, Config(rescue=False, min_tokens=LONG // 4))
    client.send(request(history(2)), 0.0)
    text = read(request(history(2))).tool_texts[0]
    store.pend("t", [Pending(text.identity, 1000.0, 10.0, 5, "")])
    client.sweep.observe("t", Usage(fresh=10), 180)  # 18 bytes a token: the output is now far below the floor
    client.send(request(history(3)), COLD_AFTER_S)
    assert client.report.reason is Reason.REMOVED
    assert [removed.tool_use_id for removed in client.report.removed] == ["toolu_0"]
