"""One session under one policy: the bodies that would be sent, who acts on them, and the account."""
