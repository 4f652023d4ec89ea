"""The hooks for tool search that agent libraries and model providers have; a file each, none of them loaded unasked."""
