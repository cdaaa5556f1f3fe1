"""The account: what each release costs, and the ledger that lists it."""
