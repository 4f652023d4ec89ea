"""A check for `cg-hints --verify`: exit 0 if the candidate's text names an idempotency key, 1 if it does not.

cg-hints --verify "python3 examples/hints/mentions_idempotency.py" --budget 3 < examples/hints/request.json
"""

import json
import sys

candidate = json.load(sys.stdin)
sys.exit(0 if "idempotency key" in candidate["text"] else 1)
