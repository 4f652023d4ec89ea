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
    PREFIX_CACHE_READ_OK = "sweep_prefix_cache_read_ok"  # asks that read the prefix from the cache and wrote nothing
    FALLBACK_USED = "sweep_fallback_used"  # asks over samples of the outputs that were answered
    INVENTORY_OF_ONE = "sweep_inventory_of_one"  # asks about a single output, where so few are allowed
    INVENTORY_THINNED = "sweep_inventory_thinned"  # candidates lost between listing and ask, where none may be
    REAPPLIED = "reapplied_same_session"  # frozen removals replayed
    PREFIX_REWRITE_REPAID = "prefix_rewrite_repaid"  # warm turns whose removals pay for the rewrite
    APPLIED = "sweep_applied"  # pending drops that became removals
    RESCUED = "sweep_rescued"  # pending drops forgotten because something newer refers to the output
    PUT_BACK = "sweep_put_back"  # originals that the store had let go of, stored again from the client's body
    RESTORED = "sweep_restored"  # removals ended: the client said that a repeated read is unchanged
    REVOKED = "sweep_revoked"  # removals ended: the API refused the changed body and took the original
    PAUSED = "sweep_paused"  # removals ended: a person wants none to stand
    EXPANDED = "sweep_expanded"  # originals given back on request
    EXPAND_UNRESOLVED = "expand_unresolved"  # expand calls whose id brought nothing back: expired, or never existed
    PINGED = "sweep_pinged"  # reads of one token that keep an entry alive
    PING_UNITS = "sweep_ping_units"  # price of pings; a unit is one fresh input token
    PING_GAINED_UNITS = "sweep_ping_gained_units"  # what requests would have cost more had no ping kept their prefix
    BILLED_UNITS = "sweep_billed_units"  # price of requests, by the provider's usage
    LIFETIME_WRITTEN = "sweep_lifetime_written"  # requests whose marks got a lifetime that is not their client's
    LIFETIME_GAINED_UNITS = "sweep_lifetime_gained_units"  # what requests would have cost more at their client's
    LIFETIME_COST_UNITS = "sweep_lifetime_cost_units"  # what requests have cost more than at their client's
    LIFETIME_REFUSED = "sweep_lifetime_refused"  # bodies that the API took with their client's own marks alone
    WAITED = "sweep_waited"  # waits that reached a five-minute lifetime less the window
    WAITED_RENEWABLE = "sweep_waited_renewable"  # of them: ended past the lifetime, and within one renewed in time


class Decline(StrEnum):
    """A candidate, a verdict or an ask that was turned away, or a doubt that was noted."""

    NOT_IN_WINDOW = "not_in_pre_expiry_window"  # turns outside the window in which `classic` asks
    EMPTY_OR_MARKER = "empty_or_marker_present"  # results that are empty, or hold a marker already
    PROTECTED = "protected"  # outputs of `protected_tools` and `protected_paths`
    KEPT_VERBATIM = "kept_verbatim"  # expanded once, or a removal of it has ended: whole from then on
    JUDGED_ELSEWHERE = "sweep_judged_elsewhere"  # drops over a history that this one does not go on from: forgotten
    ALREADY_PENDING = "sweep_already_pending"  # judged spent before, waits for a request at which applying pays
    BELOW_OUTPUT_FLOOR = "below_output_floor"  # outputs of fewer than `min_tokens`
    CANDIDATE_UNSEEN = "sweep_candidate_unseen"  # no model has read them yet
    OVER_ASK_CAP = "sweep_over_ask_cap"  # outputs past the `ask_cap` of one ask
    INVENTORY_BELOW_MIN = "sweep_inventory_below_min"  # outputs not asked about: fewer than `min_inventory`
    NO_ASKER = "sweep_no_asker"  # asks for which nobody could be called
    NO_PREFIX = "sweep_no_prefix"  # gaps without a body whose prefix the provider holds
    ASK_FAILED = "sweep_ask_failed"  # asks that brought no reply: an error, or too late
    PREFIX_CACHE_READ_ZERO = "sweep_prefix_cache_read_ZERO"  # alert: asks that read nothing from the cache
    PREFIX_CACHE_WRITE = "sweep_prefix_cache_write"  # alert: asks that paid a cache write
    FALLBACK_BLOCKED = "sweep_fallback_blocked"  # asks that `block_fallback` denied a second leg
    FALLBACK_FAILED = "sweep_fallback_failed"  # asks over samples that brought no reply
    UNPARSEABLE = "sweep_unparseable"  # look at the prompt
    REPLY_TRUNCATED = "sweep_reply_truncated"  # look at the reply's budget
    KEPT_EVERYTHING = "sweep_kept_everything"  # replies that are an empty list: nothing is spent
    FALLBACK_KEPT_EVERYTHING = "sweep_fallback_kept_everything"  # the same, of an ask over samples
    KEPT = "sweep_kept"  # verdicts that say keep
    CRITERION_MISSING = "sweep_criterion_missing"  # verdicts that leave open whether anything still needs the output
    VERDICT_UNUSABLE = "sweep_verdict_unusable"  # verdicts that are neither keep nor drop; they keep
    VERDICT_CONFLICT = "sweep_verdict_conflict"  # the reply contradicts itself about this output
    VERDICT_UNKNOWN_LABEL = "sweep_verdict_unknown_label"  # verdicts about a label that was not offered
    VERDICT_NO_LABEL = "sweep_verdict_no_label"  # verdicts without a label
    VERDICT_DUPLICATE_LABEL = "sweep_verdict_duplicate_label"  # labels that a reply names more than once
    VERDICT_MISSING = "sweep_verdict_missing"  # outputs asked about that the reply does not name; they stay
    VERDICT_STRAY = "sweep_verdict_stray"  # elements of the answer that are no verdicts
    VERDICT_LABEL_SHIFT = "sweep_verdict_label_shift"  # the reply counted from one
    DROP_WOULD_NOT_SHRINK = "sweep_drop_would_not_shrink"  # drops whose replacement is no shorter
    DROP_REFUSED_OBLIGATION = "sweep_drop_refused_obligation"  # alert
    QUOTE_FABRICATED = "sweep_quote_fabricated"  # alert
    DROP_ALL_KEPT_OPEN = "sweep_drop_all_kept_open"  # alert: all were to go, the index calls this one open
    STORE_REFUSED = "sweep_store_refused"  # the original could not be kept safely, so the output stays
    ASK_NOT_REPAID = "econ_ask_not_repaid"  # asks that would cost more than they are expected to bring
    PING_NOT_REPAID = "econ_ping_not_repaid"  # pings not worth their price, or not covered
    LIFETIME_LEFT = "sweep_lifetime_left"  # requests whose marks stay as they are: not all known here, or refused once
    LIFETIME_UNSURE = "sweep_lifetime_unsure"  # lost prefixes whose user's waits are not known well enough
    LIFETIME_NOT_COVERED = "sweep_lifetime_not_covered"  # lost prefixes at which the cheaper lifetime risks too much
    PREFIX_REWRITE_NOT_REPAID = "prefix_rewrite_not_repaid"  # turns whose drops wait: the rewrite costs more
    DROP_UNAFFORDABLE_PRUNED = "drop_unaffordable_pruned"  # drops that wait while others go
    NEWEST_KEPT = "recency_newest_kept"  # outputs that stay as the newest `keep_newest`
    STILL_IN_USE = "quiet_still_in_use"  # outputs that something leaned on lately
    NAMED_BY_USER = "quiet_named_by_user"  # spent outputs that the newest user text names
    INDEX_OPAQUE = "index_opaque"  # introduced nothing that could be recognised: no opinion
    INDEX_OPEN = "index_open"  # outputs that something later refers to
    INDEX_CLOSED = "index_closed"  # outputs whose tokens were used later, and not lately
