"""Sums over turns: counts of one turn, totals, and what a ping may cost."""
