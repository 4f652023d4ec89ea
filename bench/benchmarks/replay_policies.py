"""A session under a policy: what the turn of a replay costs, and what the bill of the recorded examples comes to."""

from pathlib import Path

from studies.synthetic import made_session

from cg.replay.policies import parse
from cg.replay.reading import record
from cg.replay.run import run
from cg.replay.sessions import open_sessions
from cg.replay.settings import Settings

SESSIONS = Path(__file__).parents[2] / "examples" / "sessions"
POLICIES = ["none", "cold", "mask-all-but-k", "paid/oracle"]
TURNS = 200


class Made:
    """A made session of 200 turns; reading it is told apart from running a policy over it."""

    params, param_names = [POLICIES], ["policy"]

    def setup(self, policy):
        self.recording = record(made_session(1, TURNS))
        self.policy = parse([policy])[-1]

    def time_run(self, policy):
        run(self.recording, self.policy, Settings())

    def time_record(self, policy):
        record(made_session(1, TURNS))


class Bill:
    """All recorded examples, priced; a change of the policy or of the cache model shows here, not in a time."""

    params, param_names = [POLICIES], ["policy"]

    def setup(self, policy):
        recordings = [record(session) for path in sorted(SESSIONS.glob("*.json")) for session in open_sessions(path)]
        self.rows = [run(recording, parse([policy])[-1], Settings()) for recording in recordings]

    def track_bill(self, policy):
        """In fresh input tokens, so that a price list does not move it."""
        return sum(row.total.units for row in self.rows)

    def track_removed(self, policy):
        return sum(row.removed_tokens for row in self.rows)

    track_bill.unit = "fresh tokens"
    track_removed.unit = "tokens"
