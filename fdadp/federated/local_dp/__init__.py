"""The local model: what a user's device sends, and what a server makes of it.

``gradient_randomizers`` and ``user_gradients`` are the device's; ``parameters_and_server`` is the server's.
"""
