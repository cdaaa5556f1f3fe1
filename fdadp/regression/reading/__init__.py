"""From the tables of users to the records of a regression."""
