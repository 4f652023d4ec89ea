"""What the documentation's one command is made of; `tools/docs.py` calls it."""
