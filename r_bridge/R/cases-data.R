# The data of the recorded cases: from the packages fda and refund, from files (lip EMG), or simulated.

canadian <- function(days = 365) {
  data(CanadianWeather, package = "fda", envir = environment())
  keep <- if (days == 365) 1:365 else seq(3, 365, by = 5)
  list(temp = t(CanadianWeather$dailyAv[keep, , "Temperature.C"]),
       prec = t(CanadianWeather$dailyAv[keep, , "log10precip"]),
       region = CanadianWeather$region,
       days = keep, argvals = (keep - 0.5) / 365)
}

dti2_complete <- function() {            # first complete visit of each subject
  data(DTI2, package = "refund", envir = environment())
  d <- DTI2[complete.cases(DTI2$cca) & complete.cases(DTI2$rcst), ]
  d <- d[!duplicated(d$id), ]
  list(cca = unclass(d$cca), rcst = unclass(d$rcst))
}

dti_visit1 <- function() {                     # complete cca, first visit
  data(DTI, package = "refund", envir = environment())
  DTI[DTI$visit == 1 & complete.cases(DTI$cca), ]
}

dti_pasat <- function() {                      # refund's own help-page subset
  data(DTI, package = "refund", envir = environment())
  DTI[DTI$visit == 1 & complete.cases(DTI), ]
}

lip <- function() {                            # 32 records x 101 of 501 times
  files <- file.path(Sys.getenv("FDADP_DATA", file.path("..", "shared", "data")),
                     c("lip_emg_emg.csv.gz", "lip_emg_lipacc.csv.gz"))
  if (!all(file.exists(files))) stop("the lip EMG data belong to no package: set FDADP_DATA to the folder with ",
                                     paste(basename(files), collapse = " and "))
  curves <- lapply(files, function(f) unname(as.matrix(read.csv(f)[, -1])))
  keep <- seq(1, 501, by = 5)
  list(emg = curves[[1]][, keep], acc = curves[[2]][, keep],
       time = seq(0, 0.69, length.out = 501)[keep])
}

# Simulated pair of curves; nonlinear = TRUE bends the effect of X(s).
simulate_fof <- function(n, m, seed, nonlinear = FALSE, sd = 0.1) {
  set.seed(seed)
  s <- unit_grid(m)
  phi <- cbind(1, sqrt(2) * sin(2 * pi * s), sqrt(2) * cos(2 * pi * s),
               sqrt(2) * sin(4 * pi * s), sqrt(2) * cos(4 * pi * s))
  sc <- matrix(rnorm(n * 5), n) %*% diag(c(1, 0.8, 0.6, 0.4, 0.3))
  X <- sc %*% t(phi)
  w <- rep(1 / (m - 1), m); w[c(1, m)] <- w[1] / 2
  beta <- outer(s, s, function(s, t) 2 * sin(pi * s) * cos(pi * t) + s * t)
  Z <- if (nonlinear) sin(X) + 0.25 * X^2 else X
  mu <- 1 + sin(pi * s)
  Y <- (Z * rep(w, each = n)) %*% beta + rep(mu, each = n) +
    matrix(rnorm(n * m, sd = sd), n)
  list(X = X, Y = Y, s = s, t = s, beta = beta, mu = mu, seed = seed)
}
