"""Numbers as people read them."""


def counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


WHOLE = 1000  # dollars from which cents say nothing more


def dollars(value: float | None, *, cents: int = 2) -> str:
    if value is None:
        return "unknown"
    cents = 0 if abs(value) >= WHOLE else cents
    return f"{'-' if round(value, cents) < 0 else ''}${abs(value):,.{cents}f}"


def share(value: float | None, *, signed: bool = False) -> str:
    return "" if value is None else f"{100 * value:+.2f} %" if signed else f"{100 * value:.1f} %"


def count(value: int) -> str:
    return f"{value:,}" if value else "-"


def part(of: int, whole: int) -> str:
    return f"{of}/{whole}" if whole else "-"
