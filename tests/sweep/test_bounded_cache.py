"""The bounded memory against a list that says the same."""

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from cg.sweep.bounded_cache import BoundedCache

KEYS = st.sampled_from("abcde")
STEPS = st.lists(
    st.tuples(st.just("put"), KEYS, st.binary(max_size=9))
    | st.tuples(st.sampled_from(("get", "pop", "grow")), KEYS, st.just(b"")),
    max_size=60,
)


@given(STEPS)
def test_what_was_used_last_is_kept_within_the_capacity(steps: list[tuple[str, str, bytes]]) -> None:
    """Both by count and by size; the longest unused go first, and the size is that of what is kept."""
    for capacity, size_of in ((3, lambda value: 1), (20, len)):
        cache: BoundedCache[str, bytes] = BoundedCache(capacity, size_of)
        kept: list[tuple[str, bytes]] = []
        for what, key, value in steps:
            old = dict(kept).get(key)
            if what == "put":
                cache.put(key, value)
                kept = [pair for pair in kept if pair[0] != key] + [(key, value)]
                while sum(size_of(v) for _, v in kept) > capacity:
                    kept.pop(0)
            elif what == "get":
                assert cache.get(key) == old
                kept = kept if old is None else [pair for pair in kept if pair[0] != key] + [(key, old)]
            elif what == "pop":
                cache.pop(key)
                kept = [pair for pair in kept if pair[0] != key]
            else:
                cache.change(key, bytes.upper)
                kept = [(k, v.upper() if k == key else v) for k, v in kept]
            assert cache.items() == kept and list(cache) == [k for k, _ in kept] and len(cache) == len(kept)
            assert cache.size == sum(size_of(v) for _, v in kept) and (key in cache) == (key in dict(kept))
        cache.clear()
        assert not cache.items() and cache.size == 0


def test_many_threads_may_use_it_at_once() -> None:
    """None sees it past its capacity for long, and the size is still the sum at the end."""
    cache: BoundedCache[int, bytes] = BoundedCache(100, len)

    def use(n: int) -> None:
        cache.put(n % 37, bytes(n % 11))
        cache.get((n * 7) % 37)
        cache.pop((n * 5) % 37)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(5000)))
    assert cache.size == sum(len(value) for _, value in cache.items()) <= 100
