"""The live gateway: it stands between a client and the API and runs the sweep on what passes."""
