"""Proves that a gateway works: questions to an upstream, what came back, and the findings in plain words."""
