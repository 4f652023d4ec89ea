"""What a replay prints and writes: the table, JSON, the HTML page, progress."""
