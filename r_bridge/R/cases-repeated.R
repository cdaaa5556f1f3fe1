# Several curves a person: mixed models of mgcv, nlme and lme4, and refund's multilevel components, pcre and fastFMM. All
# data are simulated here. The models themselves are in repeated.R, which live comparisons use, too.

# Curves of persons on a grid of [0, 1], persons sorted: a number x of each row, least to most rows a person.
repeated_curves <- function(seed, persons, most, T, least = 1) {
  set.seed(seed)
  n <- least - 1 + sample.int(most - least + 1, persons, TRUE)
  id <- rep(seq_len(persons), n); t <- seq(0, 1, length = T); x <- rnorm(length(id))
  own <- cbind(rnorm(persons), 0.6 * rnorm(persons)) %*% rbind(1, sqrt(2) * sin(2 * pi * t))
  rows <- cbind(0.7 * rnorm(length(id)), 0.4 * rnorm(length(id))) %*% rbind(sqrt(2) * cos(pi * t), sqrt(2) * cos(3 * pi * t))
  Y <- outer(rep(1, length(id)), sin(pi * t)) + outer(x, 0.4 * t) + own[id, ] + rows + 0.4 * matrix(rnorm(length(id) * T), length(id))
  list(Y = Y, x = x, id = id, t = t, visit = unlist(lapply(n, seq_len)))
}

# Numbers like lme4's sleepstudy: a reaction on each of ten days for 18 persons, some days missing.
repeated_sleep <- function() {
  set.seed(3)
  id <- rep(1:18, each = 10); day <- rep(0:9, 18)
  y <- 250 + 10 * day + 25 * rnorm(18)[id] + 6 * rnorm(18)[id] * day + 25 * rnorm(180)
  keep <- sort(sample(180, 160))
  list(y = y[keep], x = day[keep], id = id[keep])
}

case_repeated_mixed <- function() {
  s <- repeated_sleep()
  c <- repeated_curves(5, 12, 5, 31)
  X <- cbind(1, c$x)
  sm <- mgcv::smoothCon(mgcv::s(t, bs = "ps", k = 9, m = c(2, 2)), data = data.frame(t = c$t))[[1]]
  B <- sm$X; S <- sm$S[[1]]
  set.seed(2)
  id <- rep(1:60, rep(1:4, c(10, 20, 20, 10))); x <- rnorm(length(id))
  mix <- matrix(c(1, .6, 0, .7), 2); own <- matrix(rnorm(120), 60) %*% t(mix)
  C <- cbind(1 + x, 2 - x / 2) + own[id, ] + matrix(rnorm(2 * length(id)), ncol = 2) %*% t(matrix(c(.8, -.3, 0, .5), 2))
  record("repeated_mixed", "gam(paraPen = ) with functions of persons; lme with two responses; lmer with (1 | id) and (x | id)",
         input = list(sleep = s, two = list(C = C, x = x, id = id), curves = list(Y = c$Y, X = X, id = c$id, B = B, S = S,
                      sp = c(0.3, 2), sp_person = c(0.05, 1.5), scale = 0.16)),
         output = list(intercept = repeated_lmer(s$y, s$x, s$id, FALSE), slope = repeated_lmer(s$y, s$x, s$id, TRUE),
                       two = repeated_lme(C, x, id),
                       fixed = repeated_gam(c$Y, X, c$id, B, S, c(0.3, 2), c(0.05, 1.5), 0.16),
                       optimum = repeated_gam(c$Y, X, c$id, B, S)),
         note = "persons' curves have two penalties, a ridge and S; optimum: mgcv's own REML")
}

# mfpca.face with a mean curve for each visit; mfpca.sc on persons of three rows each: it stops where numbers differ.
case_repeated_levels <- function() {
  c <- repeated_curves(7, 50, 4, 40)
  f <- mfpca.face(Y = c$Y, id = c$id, visit = c$visit, twoway = TRUE, knots = 12)
  even <- repeated_curves(8, 80, 3, 30, least = 3)
  s <- mfpca.sc(Y = even$Y, id = even$id, twoway = FALSE)
  levels <- function(f) list(efunctions = unname(f$efunctions), evalues = unname(f$evalues), sigma2 = f$sigma2,
                             mu = as.numeric(f$mu))
  record("repeated_levels", "mfpca.face(Y, id, visit, twoway = TRUE, knots = 12); mfpca.sc(Y, id)",
         input = list(Y = c$Y, id = c$id, visit = c$visit, even = list(Y = even$Y, id = even$id)),
         output = list(face = c(levels(f), list(eta = unname(f$eta), scores = list(unname(f$scores$level1), unname(f$scores$level2)[1:50, ]))), sc = levels(s)),
         note = "one to four rows a person, scores of the first 50 rows; sc: three")
}

# pcre: curves of persons on given eigenfunctions. These and both mean curves lie in one spline basis without penalties, so
# that the constraint of pcre, effects of persons that sum to 0, moves their mean into the constant curve and nothing else.
case_repeated_pcre <- function() {
  c <- repeated_curves(9, 12, 4, 31)
  d <- list(Y = c$Y, x = c$x, id = factor(c$id), t = c$t)
  sm <- mgcv::smoothCon(mgcv::s(t, bs = "ps", k = 8, m = c(2, 2)), data = data.frame(t = c$t))[[1]]
  ef <- qr.Q(qr(sm$X))[, 2:3] * sqrt(31); ev <- c(1, 0.4)
  m <- pffr(Y ~ x + pcre(id = id, efunctions = ef, evalues = ev, yind = t), yind = c$t, data = d, algorithm = "gam",
            bs.int = list(bs = "ps", k = 8, m = c(2, 2)), bs.yindex = list(bs = "ps", k = 8, m = c(2, 2)),
            sandwich = "none", sp = c(1e-9, 1e-9, 0.002), scale = 0.2)
  terms <- predict(m, type = "terms")
  at <- match(unique(c$id), c$id)
  record("repeated_pcre", "pffr(Y ~ x + pcre(id, ef, ev, t), sp = c(1e-9, 1e-9, 0.002), scale = 0.2)",
         input = list(Y = c$Y, x = c$x, id = c$id, basis = sm$X, ef = ef, ev = ev,
                      ridge = 0.002 * m$smooth[[3]]$S[[1]][1, 1], scale = 0.2),
         output = list(fitted = fitted(m), effects = unname(terms[[3]][at, ])),
         note = "effects: rows of persons in order; ridge: weight of squared scores, after mgcv's scaling of penalties")
}

# fastFMM: a univariate model at each t, then smoothing; its standard errors by its own moments.
case_repeated_fastfmm <- function() {
  c <- repeated_curves(11, 40, 6, 40)
  d <- data.frame(id = c$id, x = c$x); d$Y <- c$Y
  f <- suppressMessages(fastFMM::fui(Y ~ x + (1 | id), data = d, silent = TRUE))
  record("repeated_fastfmm", "fui(Y ~ x + (1 | id))",
         input = list(Y = c$Y, x = c$x, id = c$id),
         output = list(beta = unname(f$betaHat), raw = unname(f$betaTilde), se = t(sqrt(apply(f$betaHat.var, 3, diag))), joint = as.numeric(f$qn)))
}
