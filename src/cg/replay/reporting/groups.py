"""A replay's bills by session, project, day or model."""

from dataclasses import dataclass, field
from datetime import datetime

from cg.replay.batch import Result
from cg.replay.policies import NONE


@dataclass(slots=True)
class Group:
    """The sessions that have something in common."""

    name: str
    sessions: int = 0
    requests: int = 0
    usd: float | None = 0.0  # of doing nothing; None: a price in it is unknown
    cold_requests: int = 0
    cold_excess: float = 0.0
    units: dict[str, float] = field(default_factory=dict)  # by policy, at the client's lifetime
    ttl_s: int = 0  # of the last session in it
    is_ttl_recorded: bool = True

    def take(self, result: Result) -> None:
        none = result.rows[NONE.name]
        usd = none.total.usd
        self.sessions += 1
        self.requests += result.requests
        self.usd = None if self.usd is None or usd is None else self.usd + usd
        self.cold_requests += none.cold_requests
        self.cold_excess += none.cold_excess
        self.ttl_s, self.is_ttl_recorded = result.ttl_s, result.is_ttl_recorded
        for name, row in result.rows.items():
            self.units[name] = self.units.get(name, 0.0) + row.total.units

    def change(self, policy: str) -> float | None:
        """The bill against doing nothing, a share."""
        none = self.units[NONE.name]
        return self.units[policy] / none - 1 if none else None


class Groups:
    """Sessions in their groups, taken in one by one."""

    def __init__(self, by: str) -> None:
        self.by = by
        self._groups: dict[object, Group] = {}

    def take(self, result: Result) -> None:
        """Add a session that was priced."""
        key = name_of(result, self.by)
        # two sessions may share a name, and are two all the same
        place: object = (result.path, result.name) if self.by == "session" else key
        self._groups.setdefault(place, Group(key)).take(result)

    def __len__(self) -> int:
        return len(self._groups)

    def listed(self) -> list[Group]:
        """Days in their order, all else by what it costs, the dearest first."""
        if self.by == "day":
            return sorted(self._groups.values(), key=lambda group: group.name)
        return sorted(self._groups.values(), key=lambda group: (-group.units[NONE.name], group.name))


def name_of(result: Result, by: str) -> str:
    """What the group of a session is called."""
    known = result.about
    match by:
        case "project":
            return known.project
        case "day":
            return day_of(known.started) or "no date"
        case "model":
            return known.model or "no model"
    return title_of(result)


def title_of(result: Result) -> str:
    """A session by project, date and first words; its file's name where it has neither date nor words."""
    known = result.about
    day, words = day_of(known.started), known.words
    if not day and not words:
        return result.name
    agent = result.name.partition("#")[2]
    called = [result.name] if not day else [known.project, day]
    return " ".join([*called, *([f"#{agent}"] if agent and day else []), words]).strip()


def day_of(moment: float | None) -> str:
    """The day where the user is, year first."""
    return "" if moment is None else datetime.fromtimestamp(moment).astimezone().strftime("%Y-%m-%d")
