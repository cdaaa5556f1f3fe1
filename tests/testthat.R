library(testthat)
library(fdadp)

test_check("fdadp")
