"""What a request may hold; every number is a promise of the contract, so callers can size their input by it."""

MAX_DOCUMENTS = 4096
MAX_TEXT_BYTES = 2 * 1024 * 1024  # UTF-8, all documents of one request together
MAX_QUERY_BYTES = 8192  # UTF-8
MAX_REQUEST_BYTES = 16 * 1024 * 1024  # the JSON itself; with --lines, one line without its newline

MAX_CACHED_CATALOGS = 8  # --lines: an agent works on a handful of snapshots at a time
MAX_CACHED_BYTES = 32 * 1024 * 1024  # --lines: ids and texts of the remembered catalogs together, as Python holds them
MAX_REMEMBERED_CHECKS = 65_536  # about 150 bytes each: 10 MB
DEFAULT_TIMEOUT_S = 30.0  # one check of --verify
MAX_TIMEOUT_S = 86_400.0  # a check that takes longer than a day is a mistake in the flag
