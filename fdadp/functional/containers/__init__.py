"""Containers that curves come in: files, stores, tables of other libraries. They are opened here, and read in pieces.

What a kind of container is lies in a module of its own, which says what is public of it (names, shapes, grids) and how
a piece is read; the registry of them is in :mod:`fdadp.functional.containers.open_curves`.
"""
