"""The door to the compiled reader of request bodies; cg.sweep.body.transcript is what other rooms use."""

from cg._transcript import LARGEST_BODY, Scan, Stopped, TextToken, ToolUse, is_string_token, is_value

__all__ = ["LARGEST_BODY", "Scan", "Stopped", "TextToken", "ToolUse", "is_string_token", "is_value"]
