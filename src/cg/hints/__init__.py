"""Order a small catalog for a query: BM25, with an outside ordering mixed in at a bounded price.

Doors: `cg.hints.ordering.order` (a request in, a response out), `cg.hints.combine.interleave` (the alternation alone),
`cg.hints.verify.verify` (checks in that order), and the command `cg-hints`. Nothing is imported here, so that each
costs only what it needs.
"""
