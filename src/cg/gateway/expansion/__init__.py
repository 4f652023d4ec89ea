"""Answers calls of `cg_expand`: inside the gateway where a reply only expands, by a route, and in a stream."""
