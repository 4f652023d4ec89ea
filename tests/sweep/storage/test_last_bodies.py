"""The last bodies sent, in memory: what goes, and when."""

from cg.sweep.storage.last_bodies import LastBodies


def test_a_body_goes_at_its_time_and_not_before() -> None:
    """A branch that nobody has touched for the lifetime of its cache entry holds no memory."""
    bodies = LastBodies()
    bodies.keep("t", "b", b"body")
    bodies.keep_until("t", "b", 300.0)
    bodies.drop_past(299.0)
    assert bodies.last("t", "b") == b"body"
    bodies.drop_past(300.0)
    assert bodies.last("t", "b") is None and bodies.size_bytes == 0


def test_a_body_that_was_touched_again_stays_for_the_longer_time() -> None:
    """The last word counts, and it is looked at again when that time comes."""
    bodies = LastBodies()
    bodies.keep("t", "b", b"body")
    for until in (300.0, 900.0, 600.0):
        bodies.keep_until("t", "b", until)
    bodies.drop_past(500.0)
    assert bodies.last("t", "b") == b"body"
    bodies.drop_past(600.0)
    assert len(bodies) == 0


def test_a_long_lifetime_does_not_hold_back_the_end_of_shorter_ones() -> None:
    """An hour's entry that was kept first stands before nobody."""
    bodies = LastBodies()
    for branch, until in (("hour", 3600.0), ("minutes", 300.0)):
        bodies.keep("t", branch, b"x")
        bodies.keep_until("t", branch, until)
    bodies.drop_past(301.0)
    assert list(bodies.sizes()) == [("t", "hour")]


def test_times_are_kept_for_no_more_names_than_there_were_bodies() -> None:
    """Each name has one entry however often it is touched, and none once its time is over."""
    bodies = LastBodies()
    for n in range(1000):
        bodies.keep("t", f"b{n % 10}", b"x")
        bodies.keep_until("t", f"b{n % 10}", 100.0 + n)
    assert len(bodies._ends) == len(bodies._until) == 10
    bodies.forget("t")
    bodies.drop_past(2000.0)
    assert len(bodies._ends) == len(bodies._until) == 0


def test_no_time_is_kept_for_a_body_that_is_not_there() -> None:
    """A branch whose body was too big, or went first, is not remembered either."""
    bodies = LastBodies(body_bytes=4)
    bodies.keep("t", "b", b"too long")
    bodies.keep_until("t", "b", 300.0)
    assert not bodies._ends and not bodies._until
