"""The local model: what a client sends (``randomizers``, ``client``), and what a server makes of it
(``parameters``)."""
