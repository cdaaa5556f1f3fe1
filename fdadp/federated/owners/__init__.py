"""Sums of many owners without anybody who decrypts: masks between owners, which cancel in the sum.

Who reads this first: :mod:`~fdadp.federated.owners.signed_messages` (what is sent),
:mod:`~fdadp.federated.owners.pairwise_masks` (what hides a share), :mod:`~fdadp.federated.owners.data_owner` (what an
owner answers, and when it writes what to its disk), :mod:`~fdadp.federated.owners.coordinator` (who forwards it).
Theorem and proof: ``docs/theory/federated.md#masks``.
"""

from fdadp.files.regular_files import check_installed

check_installed("cryptography", "a contract of masked sums")
