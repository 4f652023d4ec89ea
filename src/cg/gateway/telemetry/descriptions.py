"""What the members of the closed sets mean, in plain words, for the page and for the doctor."""

from collections.abc import Mapping

from cg.gateway.events import Fault, Outcome
from cg.sweep.ledger import AskOutcome, Reason

REASONS: Mapping[Reason, str] = {
    Reason.UNREADABLE: "the request was not understood and left as it was",
    Reason.SERVER_THREAD: "the provider holds the history, so there is nothing to remove here",
    Reason.SIDE_CALL: "a request without tools, such as a title",
    Reason.RETRY: "the same request again",
    Reason.BYPASSED: "passed by request",
    Reason.PAUSED: "a person has switched removal off",
    Reason.OBSERVED: "only observed, nothing changed",
    Reason.TOOL_NAME_TAKEN: "the client has a tool of the same name as ours",
    Reason.NOT_DECLARED: "our tool is not declared yet, and declaring it now would lose the cache",
    Reason.WARM: "the cache is warm: removing now would cost more than it saves",
    Reason.PRE_EXPIRY: "the cache is about to expire",
    Reason.COLD: "the cache is cold",
    Reason.BROKEN: "the client itself changed the beginning of its history",
    Reason.UNCACHED: "the provider caches nothing",
    Reason.UNKNOWN: "it cannot be told whether the cache is still there",
    Reason.NO_CANDIDATES: "no output is large and old enough",
    Reason.BELOW_INVENTORY: "too few outputs to ask about",
    Reason.NO_ASKER: "nobody could be asked",
    Reason.ASK_FAILED: "the ask brought no answer",
    Reason.ASK_NOT_REPAID: "an ask would have cost more than it was likely to save",
    Reason.ASKING_LATCHED: "asking is off in this conversation: two asks missed the cache",
    Reason.JUDGED: "outputs were judged spent and wait to be removed",
    Reason.NOTHING_JUDGED: "nothing was judged in the gap before",
    Reason.NOTHING_SPENT: "every output is still needed",
    Reason.WAITING: "outputs judged spent wait for a request at which removing them pays",
    Reason.NOT_REPAID: "removing now would not pay",
    Reason.REFUSED: "an original could not be kept safely, or its replacement was not shorter",
    Reason.UNSWEPT_TOO_BIG: "close to the model's window: the client has to see the real size",
    Reason.REMOVED: "outputs were removed",
    Reason.FAULT: "something of ours failed; the request went on in its last known form",
}

FAULTS: Mapping[Fault, str] = {
    Fault.SWEEP: "a decision could not be made",
    Fault.STORE: "the state could not be read or written",
    Fault.WATCHDOG: "our own work took longer than its budget",
    Fault.TIMER: "an idle ask failed on our side",
    Fault.RECOVERY: "an original could not be brought back",
    Fault.METRICS: "a figure was not counted",
    Fault.UPSTREAM_UNREACHABLE: "the upstream could not be reached",
    Fault.UPSTREAM_TIMEOUT: "the upstream did not answer in time",
    Fault.UPSTREAM_CUT: "the upstream ended a reply before its end",
    Fault.UPSTREAM_UNREADABLE: "a reply of the upstream was not understood",
    Fault.CLIENT_GONE: "the client went away before its answer",
}

OUTCOMES: Mapping[Outcome, str] = {
    Outcome.ORIGINAL: "the original came back",
    Outcome.EXPIRED: "it is no longer kept; the call that made it was named",
    Outcome.UNKNOWN: "no output has this id",
    Outcome.ROUNDS_SPENT: "asked for too often in one reply; passed to the client",
}

ASKS: Mapping[AskOutcome, str] = {
    AskOutcome.DROPPED: "some outputs are spent",
    AskOutcome.KEPT_ALL: "all outputs are needed",
    AskOutcome.UNREADABLE: "the answer could not be read, so everything was kept",
    AskOutcome.FAILED: "there was no answer",
}
