"""What is public about a private fit: the prior, the columns, the inputs."""
