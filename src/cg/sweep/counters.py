"""The two closed families of counter names: work done, and work turned away.

The spellings are a contract with dashboards and alert rules. A count of declines must not rise because the sweep works
better, so a success never stands in that family. No name is ever built from content, a model's name or a label.
"""

from enum import StrEnum


class Event(StrEnum):
    """Work done, or a neutral observation."""

    OFFERED = "sweep_offered"  # candidates in the inventory, after the cap
    ADJUDICATED = "sweep_adjudicated"  # candidates in an ask that was answered
    DROPPED = "sweep_dropped"  # drops authorised; applying one may still be refused
    CANDIDATE_AT_DEPTH = "sweep_candidate_at_depth"  # candidates that the asked model has in its prefix
    PREFIX_CACHE_READ_OK = "sweep_prefix_cache_read_ok"
    FALLBACK_USED = "sweep_fallback_used"
    INVENTORY_OF_ONE = "sweep_inventory_of_one"
    INVENTORY_THINNED = "sweep_inventory_thinned"  # a filter stands between candidates and inventory, where none may
    REAPPLIED = "reapplied_same_session"  # frozen removals replayed
    PREFIX_REWRITE_REPAID = "prefix_rewrite_repaid"
    NO_INDEX_RECORD = "evidence_no_index_record"
    APPLIED = "sweep_applied"  # pending drops that became removals
    RESCUED = "sweep_rescued"  # pending drops forgotten because something newer refers to the output
    PUT_BACK = "sweep_put_back"  # originals that the store had let go of, stored again from the client's body
    RESTORED = "sweep_restored"  # removals ended: the client said that a repeated read is unchanged
    REVOKED = "sweep_revoked"  # removals ended: the API refused the changed body and took the original
    EXPANDED = "sweep_expanded"  # originals given back on request
    EXPAND_UNRESOLVED = "expand_unresolved"  # expand calls whose id brought nothing back: expired, or never existed
    PINGED = "sweep_pinged"
    PING_UNITS = "sweep_ping_units"  # price of pings; a unit is one fresh input token
    PING_GAINED_UNITS = "sweep_ping_gained_units"  # what requests would have cost more had no ping kept their prefix
    BILLED_UNITS = "sweep_billed_units"  # price of requests, by the provider's usage
    WAITED = "sweep_waited"  # waits that reached a five-minute lifetime less the window
    WAITED_RENEWABLE = "sweep_waited_renewable"  # of them: ended past the lifetime, and within one renewed in time


class Decline(StrEnum):
    """A candidate, a verdict or an ask that was turned away, or a doubt that was noted."""

    NOT_IN_WINDOW = "not_in_pre_expiry_window"
    NON_TEXT_BLOCKS = "non_text_blocks"
    EMPTY_OR_MARKER = "empty_or_marker_present"
    KEPT_VERBATIM = "kept_verbatim"  # expanded once, or a removal of it has ended: whole from then on
    ALREADY_PENDING = "sweep_already_pending"  # judged spent before, waits for a request at which applying pays
    BELOW_OUTPUT_FLOOR = "below_output_floor"
    CANDIDATE_UNSEEN = "sweep_candidate_unseen"  # newer than the body that is asked about
    OVER_ASK_CAP = "sweep_over_ask_cap"
    INVENTORY_BELOW_MIN = "sweep_inventory_below_min"
    NO_ASKER = "sweep_no_asker"
    NO_PREFIX = "sweep_no_prefix"
    STALE_PREFIX = "sweep_stale_prefix"
    ASK_FAILED = "sweep_ask_failed"
    PREFIX_CACHE_READ_ZERO = "sweep_prefix_cache_read_ZERO"
    PREFIX_CACHE_WRITE = "sweep_prefix_cache_write"
    FALLBACK_BLOCKED = "sweep_fallback_blocked"
    FALLBACK_FAILED = "sweep_fallback_failed"
    FALLBACK_NO_MODEL = "sweep_fallback_no_model"
    UNPARSEABLE = "sweep_unparseable"  # look at the prompt
    REPLY_TRUNCATED = "sweep_reply_truncated"  # look at the reply's budget
    KEPT_EVERYTHING = "sweep_kept_everything"
    FALLBACK_KEPT_EVERYTHING = "sweep_fallback_kept_everything"
    KEPT = "sweep_kept"
    CRITERION_MISSING = "sweep_criterion_missing"
    VERDICT_UNUSABLE = "sweep_verdict_unusable"
    VERDICT_CONFLICT = "sweep_verdict_conflict"  # the reply contradicts itself about this output
    VERDICT_UNKNOWN_LABEL = "sweep_verdict_unknown_label"
    VERDICT_NO_LABEL = "sweep_verdict_no_label"
    VERDICT_DUPLICATE_LABEL = "sweep_verdict_duplicate_label"
    VERDICT_MISSING = "sweep_verdict_missing"
    VERDICT_STRAY = "sweep_verdict_stray"  # elements of the answer that are no verdicts
    VERDICT_LABEL_SHIFT = "sweep_verdict_label_shift"  # the reply counted from one
    DROP_WOULD_NOT_SHRINK = "sweep_drop_would_not_shrink"
    DROP_REFUSED_OBLIGATION = "sweep_drop_refused_obligation"  # alert
    QUOTE_FABRICATED = "sweep_quote_fabricated"  # alert
    DROP_ALL_KEPT_OPEN = "sweep_drop_all_kept_open"  # alert: all were to go, the index calls this one open
    STORE_REFUSED = "sweep_store_refused"  # the original could not be kept safely, so the output stays
    LATCHED_OFF = "sweep_ask_latched_off"  # two asks of this thread missed the prefix
    TOO_BIG = "sweep_too_big"  # past 90 % of the model's window
    ASK_NOT_REPAID = "econ_ask_not_repaid"
    PING_NOT_REPAID = "econ_ping_not_repaid"
    PREFIX_REWRITE_NOT_REPAID = "prefix_rewrite_not_repaid"
    DROP_UNAFFORDABLE_PRUNED = "drop_unaffordable_pruned"
    NEWEST_KEPT = "recency_newest_kept"
    INDEX_OPAQUE = "index_opaque"  # introduced nothing that could be recognised: no opinion
    INDEX_OPEN = "index_open"
    INDEX_CLOSED = "index_closed"
    INDEX_NO_RECORD = "index_no_record"
