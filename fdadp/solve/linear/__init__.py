"""Normal equations and the matrices that they are made of."""
