"""What every room stands on: public settings checked, types, threads, the terminal, names loaded on first use."""
