"""The local model: what a user's device sends (``randomizers``, ``user_device``), and what a server makes of it
(``parameters_and_server``)."""
