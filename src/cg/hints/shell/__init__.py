"""What only the command needs: its flags, where its documents come from, its table, and the checks it runs."""
