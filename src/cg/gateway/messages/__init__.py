"""The sweep on live Messages requests: the handler, idle timers, and `--observe`."""
