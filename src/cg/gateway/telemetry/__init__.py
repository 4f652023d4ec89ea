"""Figures, logs and traces of a gateway, and the routes and the page that show them."""
