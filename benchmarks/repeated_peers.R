# One program of R on simulated persons, in a process of its own; benchmarks/repeated.py calls it.
#
#   Rscript repeated_peers.R METHOD FOLDER SCRIPTS   -> one line: CPU seconds, peak GB, noise variance, version
#
# FOLDER holds shape.txt (rows, points), Y.bin, id.bin and X.bin (columns age, sex, weekend), doubles by column; SCRIPTS is
# the folder of r_bridge/R. The seconds are those of the fit, of lmer those of three points times a third of all.
a <- commandArgs(TRUE)
shape <- scan(file.path(a[2], "shape.txt"), quiet = TRUE); n <- shape[1]; T <- shape[2]
read <- function(name, columns) matrix(readBin(file.path(a[2], name), "double", n * columns), n)
Y <- read("Y.bin", T); X <- read("X.bin", 3); id <- as.integer(read("id.bin", 1))
colnames(X) <- c("age", "sex", "weekend")
cpu <- function(expression) { t0 <- proc.time(); value <- force(expression); list(value = value, s = sum((proc.time() - t0)[c(1, 2)])) }
table_of <- function() { d <- data.frame(X, id = factor(id)); d$Y <- Y; d }
package <- c(face = "refund", gam = "mgcv", lmer = "lme4", fui = "fastFMM")[[a[1]]]
suppressPackageStartupMessages(library(package, character.only = TRUE))
if (a[1] == "gam") {
  source(file.path(a[3], "plain.R")); source(file.path(a[3], "repeated.R"))
  sm <- mgcv::smoothCon(mgcv::s(t, bs = "ps", k = 9, m = c(2, 2)), data = data.frame(t = seq(0, 1, length = T)))[[1]]
}
one <- function(j) { d <- data.frame(y = Y[, j], X, id = id); m <- lme4::lmer(y ~ age + sex + weekend + (1 | id), d); sigma(m)^2 }
found <- switch(a[1],
  face = cpu(mfpca.face(Y = Y, id = id, twoway = FALSE, knots = 27)$sigma2),
  gam = cpu(repeated_gam(Y, cbind(1, X), id, sm$X, sm$S[[1]])$noise),
  lmer = { m <- cpu(vapply(round(seq(1, T, length = 3)), one, 0)); list(value = NA, s = m$s * T / 3) },
  fui = cpu({ fui(Y ~ age + sex + weekend + (1 | id), data = table_of(), var = FALSE, analytic = FALSE, silent = TRUE); NA }))
status <- readLines("/proc/self/status")
peak <- as.numeric(sub("[^0-9]*([0-9]+).*", "\\1", grep("^VmHWM", status, value = TRUE))) / 2^20
cat(found$s, peak, found$value, as.character(packageVersion(package)), "\n")
