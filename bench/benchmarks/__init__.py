"""asv benchmarks; each measures the installed package."""
