# mgcv::gam for the scores of three components, one after the other: the protocol of worker.py.
# The matrices S and L that te(X, S, by = L) wants are made before the clock and the memory count start.
suppressMessages(library(mgcv))
arguments <- commandArgs(TRUE)
folder <- arguments[1]; n <- as.integer(arguments[2]); points <- as.integer(arguments[3])
numbers <- function(name, columns)
  matrix(readBin(file.path(folder, name), "double", n * columns), n, columns, byrow = TRUE)

X <- numbers("X.f64", points)
xi <- numbers(sprintf("scores-%d.f64", n), 3)
s <- seq(0, 1, length.out = points)
w <- c(0.5, rep(1, points - 2), 0.5) / (points - 1)
S <- matrix(s, n, points, byrow = TRUE)
L <- matrix(w, n, points, byrow = TRUE)

fit <- function(rows) lapply(1:3, function(k) {
  d <- list(y = xi[rows, k], X = X[rows, , drop = FALSE], S = S[rows, , drop = FALSE], L = L[rows, , drop = FALSE])
  gam(y ~ te(X, S, by = L, bs = "ps", k = c(7, 7), m = list(c(2, 2), c(2, 2))), method = "REML", data = d)
})
say <- function(...) { cat(sprintf(...), "\n", sep = ""); flush(stdout()) }

invisible(fit(seq_len(min(n, 100))))
invisible(gc())
blas <- basename(extSoftVersion()[["BLAS"]])
say('{"ready": "mgcv %s, R %s, %s"}', packageVersion("mgcv"), getRversion(), blas)
input <- file("stdin"); open(input)
while (length(line <- readLines(input, 1)) > 0) {
  if (startsWith(line, "save")) {
    file <- sub("^save ", "", line)
    writeBin(as.vector(t(sapply(fits, fitted))), paste0(file, ".fitted"))
    writeBin(as.vector(sapply(fits, function(g) unname(g$sp))), paste0(file, ".sp"))
    say("{}")
  } else {
    fits <- NULL
    time <- system.time(fits <- fit(seq_len(n)))
    say('{"seconds": %.4f, "cpu": %.4f}', time[["elapsed"]], sum(time[c("user.self", "sys.self")]))
  }
}
