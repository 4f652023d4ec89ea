"""Take spent tool outputs out of a transcript when that is paid for, leaving a marker that brings them back."""
