"""The demonstration: weather, simulated people, a published scheme, owners on Flower; all data come along."""
