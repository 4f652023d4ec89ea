"""Which outputs are spent: the inventory, the question, the reply, the co-reference index, the free judges."""
