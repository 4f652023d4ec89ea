"""Settings of the sweep, one varied at a time and priced on recorded sessions, as pages with a table and a plot each.

python bench/studies PATH... --into FOLDER
"""
