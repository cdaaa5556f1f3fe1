# Recorded cases: functional principal components of refund.

fpca_parts <- function(f, Yhat = TRUE, fields = NULL) {
  drop_null(list(mu = as.numeric(f$mu), efunctions = as.matrix(f$efunctions),
                 evalues = as.numeric(f$evalues), scores = as.matrix(f$scores),
                 npc = f$npc, pve = f$pve, sigma2 = f$sigma2,
                 diag_var = if (is.null(f$diag.var)) NULL else f$diag.var[1:5, ],
                 Yhat = if (Yhat) f$Yhat else NULL))
}

# fpca.face's own intermediate results, by its published steps (checked below).
face_internals <- function(Y, argvals, knots = 35, p = 3, m = 2) {
  J <- ncol(Y)
  mu <- smooth.spline(argvals, colMeans(Y), all.knots = TRUE)
  Yc <- t(t(Y) - mu$y)
  kn <- seq(-p, knots + p, length = knots + 1 + 2 * p) / knots
  kn <- kn * diff(range(argvals)) + min(argvals)
  B <- splines::spline.des(kn, argvals, p + 1, outer.ok = TRUE)$design
  D <- diff(diag(ncol(B)), differences = m)
  e <- eigen(crossprod(B), symmetric = TRUE)
  val <- if (min(e$values) <= 1e-7) e$values + 1e-6 else e$values
  R <- e$vectors %*% (t(e$vectors) / sqrt(val))
  es <- eigen(R %*% crossprod(D) %*% R, symmetric = TRUE)
  s <- es$values; s[(ncol(B) - m + 1):ncol(B)] <- 0
  Yt <- crossprod(R %*% es$vectors, crossprod(B, t(Yc)))
  Cd <- rowSums(Yt^2)
  gcv <- function(lx) {
    l <- exp(lx) * s
    (sum(Cd * (l / (1 + l))^2) - sum(Yt^2) + sum(Yc^2)) / (1 - sum(1 / (1 + l)) / J)^2
  }
  grid <- seq(-20, 20, length.out = 100)
  sc <- vapply(grid, gcv, 0)
  list(knots = kn, s = s, lambda_grid = exp(grid), gcv = sc,
       lambda = exp(grid[which.min(sc)]), ridge_added = as.numeric(min(e$values) <= 1e-7),
       mean_spline = list(lambda = mu$lambda, df = mu$df, spar = mu$spar, crit = mu$cv.crit))
}

# fpca.face(var = TRUE) fails where only one component is kept: then without.
face_with_var <- function(...) tryCatch(fpca.face(..., var = TRUE), error = function(e) fpca.face(...))

fpca_face_set <- function(Y, argvals, pves = c(0.95, 0.99)) {
  out <- lapply(pves, function(p) {
    f <- face_with_var(Y, argvals = argvals, pve = p)
    c(fpca_parts(f), list(pve_asked = p))
  })
  f0 <- fpca.face(Y)                                   # all defaults
  f2 <- fpca.face(Y, argvals = argvals, npc = 2, knots = 20, p = 3, m = 2)
  list(unit = out, default = fpca_parts(f0, Yhat = FALSE),
       npc2_knots20 = fpca_parts(f2, Yhat = FALSE),
       internals = face_internals(Y, argvals))
}

# fpca.sc's two smoothing steps (mean, covariance), by its published code.
sc_internals <- function(Y, argvals, nbasis = 10) {
  I <- nrow(Y); D <- ncol(Y)
  md <- data.frame(y = as.vector(Y), d.vec = rep(argvals, each = I))
  g0 <- gam(y ~ s(d.vec, k = nbasis), data = md)
  at <- data.frame(d.vec = argvals)
  mu <- as.numeric(predict(g0, newdata = at))
  Yc <- Y - matrix(mu, I, D, byrow = TRUE)
  obs <- !is.na(Y)
  Yz <- ifelse(obs, Yc, 0)
  count <- crossprod(obs); G0 <- crossprod(Yz) / count
  diag0 <- diag(G0); diag(G0) <- NA
  cd <- data.frame(g = as.vector(G0), row.vec = rep(argvals, each = D), col.vec = rep(argvals, D),
                   w = as.vector(count))
  g1 <- gam(g ~ te(row.vec, col.vec, k = nbasis), weights = w, data = cd)
  K <- matrix(predict(g1, newdata = cd), D, D)
  K <- (K + t(K)) / 2
  part <- function(g) {
    p <- smooth_parts(g$smooth[[1]])
    p$XP <- NULL
    c(list(sp = g$sp, edf_total = sum(g$edf), score = as.numeric(g$gcv.ubre), sig2 = g$sig2,
           coefficients = g$coefficients), list(smooth = p))
  }
  list(mean = c(part(g0), list(design = predict(g0, newdata = at, type = "lpmatrix"))),
       cov = c(part(g1), list(margin_knots = lapply(g1$smooth[[1]]$margin, function(m) m$xp))),
       raw_diag = diag0, smoothed = K)
}

fpca_case <- function(name, Y, argvals, sc = NULL, note = "", call_note = "") {
  ssvd <- suppressWarnings(fpca.ssvd(Y, argvals = argvals))
  ssvd3 <- suppressWarnings(fpca.ssvd(Y, argvals = argvals, npc = 3))
  f2s <- suppressWarnings(suppressMessages(fpca2s(Y, argvals = argvals)))
  f2s3 <- suppressMessages(fpca2s(Y, argvals = argvals, npc = 3))
  if (is.null(sc)) sc <- list(Y = Y, argvals = argvals)
  scs <- lapply(c(0.95, 0.99), function(p) {
    f <- fpca.sc(sc$Y, argvals = sc$argvals, pve = p, var = TRUE)
    c(fpca_parts(f), list(pve_asked = p))
  })
  record(name, paste0("fpca.face | fpca.sc | fpca.ssvd | fpca2s (Y, argvals, pve=0.95 and 0.99, var=TRUE)",
                      call_note),
         input = list(Y = Y, argvals = argvals, sc_Y = sc$Y, sc_argvals = sc$argvals),
         output = list(face = fpca_face_set(Y, argvals), sc = scs,
                       sc_internals = sc_internals(sc$Y, sc$argvals),
                       ssvd = fpca_parts(ssvd), ssvd3 = fpca_parts(ssvd3, Yhat = FALSE),
                       twostep = fpca_parts(f2s), twostep3 = fpca_parts(f2s3, Yhat = FALSE)),
         note = note)
}

case_fpca_dti <- function() {
  d <- dti_visit1()
  fpca_case("fpca_dti", unclass(d$cca), unit_grid(93),
            note = "cca, first visit, complete curves")
}

case_fpca_dti_missing <- function() {
  data(DTI, package = "refund", envir = environment())
  Y <- DTI$cca
  argvals <- unit_grid(93)
  sc <- lapply(c(0.95, 0.99), function(p) {
    f <- fpca.sc(Y, argvals = argvals, pve = p, var = TRUE)
    c(fpca_parts(f, Yhat = FALSE), list(pve_asked = p, Yhat_incomplete =
      f$Yhat[rowSums(is.na(Y)) > 0, ]))
  })
  face <- fpca.face(Y, argvals = argvals, pve = 0.99, var = TRUE)
  record("fpca_dti_missing", "fpca.sc(DTI$cca, argvals, pve, var=TRUE); fpca.face(DTI$cca, ...)",
         input = list(Y = Y, argvals = argvals),
         output = list(sc = sc, sc_internals = sc_internals(Y, argvals),
                       face = c(fpca_parts(face, Yhat = FALSE),
                                list(Y_imputed_incomplete = face$Y[rowSums(is.na(Y)) > 0, ]))),
         note = "all 382 cca curves with the real missing values (NaN in Y)")
}

case_fpca_canadian <- function() {
  d <- canadian(365); thin <- canadian(73)
  fpca_case("fpca_canadian", d$temp, d$argvals,
            sc = list(Y = thin$temp, argvals = thin$argvals),
            note = "temperature; fpca.sc on 73 days (sc_Y), the others on 365")
}

# Components of persons and of their scans: needs refund 0.1-40's mfpca.face. Only what is compared is kept.
case_mfpca_dti <- function() {
  data(DTI, package = "refund", envir = environment())
  d <- DTI[complete.cases(DTI$cca), ]
  Y <- unclass(d$cca)
  f <- mfpca.face(Y = Y, id = d$ID, twoway = FALSE, knots = 30)
  record("mfpca_dti", "mfpca.face(Y = DTI$cca, id = DTI$ID, twoway = FALSE, knots = 30)",
         input = list(Y = unname(Y), id = as.numeric(d$ID)),
         output = list(mu = as.numeric(f$mu), efunctions = unname(f$efunctions), evalues = unname(f$evalues),
                       scores1 = unname(f$scores$level1), scores2 = unname(f$scores$level2)[1:50, ], sigma2 = f$sigma2),
         note = "complete scans of cca, one to seven a person; scores of the first 50 scans")
}
