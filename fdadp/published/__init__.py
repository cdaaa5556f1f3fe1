"""NOT PRIVATE: schemes as they were published, kept to compare with; their ledgers say what they lack."""
