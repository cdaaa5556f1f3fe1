"""What the private learners share."""
