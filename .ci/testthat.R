# Run the tests of the installed R package; a run in which no test passed is a failure.
folder <- file.path("tests", "testthat")
results <- as.data.frame(testthat::test_dir(folder, package = "fdadp", load_package = "installed", reporter = "summary", stop_on_failure = FALSE))
bad <- sum(results$failed) + sum(results$error)
good <- sum(!results$skipped & !results$failed & !results$error)
cat(sprintf("R %s: %d tests passed, %d failed, %d skipped (%d expectations)\n", getRversion(), good, sum(results$failed > 0 | results$error), sum(results$skipped), sum(results$nb)))
if (good == 0) cat("FAILED: no test passed\n")
quit(status = as.integer(bad > 0 || good == 0))
