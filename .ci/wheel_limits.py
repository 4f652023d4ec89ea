"""Hold a wheel to its limits: under 2.6 MB, typed, with its word table's notice, and with no generated C in it."""

import sys
import zipfile
from pathlib import Path

PAGE = "cg/gateway/telemetry/dashboard.html"  # every other page would be an annotated build
SCRIPT = "cg/sweep/storage/redis/thread.lua"
LIMIT_BYTES = (
    2_600_000  # it should install in a second or two; half of it is the word table, which no zip makes smaller
)
TABLE = {"cg/hints/producer/word_table.bin", "cg/hints/producer/NOTICE.txt"}  # neither ships without the other

for name in sys.argv[1:]:
    size = Path(name).stat().st_size
    members = zipfile.ZipFile(name).namelist()
    assert size < LIMIT_BYTES, f"{name}: {size} bytes, limit {LIMIT_BYTES}"
    assert "cg/py.typed" in members, f"{name}: not marked as typed"
    assert set(members) >= TABLE, f"{name}: without {TABLE - set(members)}"
    left = [m for m in members if m.endswith((".c", ".html", ".pyx", ".pxd", ".h")) and m != PAGE]
    assert PAGE in members, f"{name}: the gateway's page is missing"
    assert SCRIPT in members, f"{name}: the script of the state server is missing"
    assert not left, f"{name}: build files inside: {left}"
    print(f"{name}: {size} bytes, {len(members)} files")
