"""Recorded sessions, priced under a policy: what the sweep would have saved on the work already done."""
