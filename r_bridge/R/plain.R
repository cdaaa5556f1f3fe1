# Taking R objects apart into plain lists: attribute-free numbers, strings and lists, which Python reads as they are.

# Strip attributes (other than dim and the names of lists); refuse anything that is not plain.
plain <- function(x, where = "x") {
  if (is.null(x)) return(NULL)
  if (is.data.frame(x)) x <- as.list(x)
  if (is.factor(x)) x <- as.character(x)
  if (is.list(x)) {
    nm <- names(x)
    x <- unclass(x)
    out <- lapply(seq_along(x), function(i)
      plain(x[[i]], paste0(where, "$", if (is.null(nm)) i else nm[i])))
    names(out) <- nm
    return(out)
  }
  if (inherits(x, "Matrix")) x <- as.matrix(x)
  if (!(is.numeric(x) || is.character(x) || is.logical(x)))
    stop(where, " is not plain: ", class(x)[1])
  d <- dim(x)
  y <- as.vector(unclass(x))
  attributes(y) <- NULL
  if (length(d) >= 2) dim(y) <- d
  y
}

drop_null <- function(x) x[!vapply(x, is.null, logical(1))]

trapezoid <- function(x) {
  d <- diff(x)
  c(d[1], d[-1] + d[-length(d)], d[length(d)]) / 2
}

# One smooth of a fitted gam: knots, penalties, scaling and constraint.
smooth_parts <- function(sm) {
  margins <- if (is.null(sm$margin)) list(sm) else sm$margin
  nc <- attr(sm, "nCons")
  qrc <- attr(sm, "qrc")
  constraint <- Z <- NULL
  if (inherits(qrc, "qr")) {
    k <- nrow(qrc$qr)
    constraint <- qr.X(qrc)                      # column(s): C^T
    Z <- qr.qy(qrc, rbind(matrix(0, nc, k - nc), diag(k - nc)))
  }
  drop_null(list(
    label = sm$label, class = class(sm)[1], term = sm$term, by = sm$by,
    first = sm$first.para, last = sm$last.para,
    bs_dim = vapply(margins, function(m) as.numeric(m$bs.dim), 0),
    knots = if (is.null(margins[[1]]$knots)) NULL else
      lapply(margins, function(m) as.numeric(m$knots)),
    orders = lapply(margins, function(m) as.numeric(unlist(m$p.order))),
    marginal_constraint = if (is.null(sm$mc)) NULL else as.numeric(sm$mc),
    XP = if (length(sm$XP)) lapply(sm$XP, as.matrix) else NULL,
    S = lapply(sm$S, as.matrix), S_scale = sm$S.scale,
    rank = sm$rank, null_space_dim = sm$null.space.dim, df = sm$df,
    n_constraints = nc, constraint = constraint, Z = Z,
    del_index = attr(sm, "del.index")))
}

gam_parts <- function(fit, keep_design = TRUE, rows = NULL) {
  s <- summary(fit, re.test = FALSE)
  X <- if (keep_design) predict(structure(fit, class = setdiff(class(fit), "pffr")),
                                type = "lpmatrix") else NULL
  if (!is.null(rows) && !is.null(X)) X <- X[rows, , drop = FALSE]
  drop_null(list(
    design = X, design_rows = rows,
    method = as.character(fit$method)[1],
    coefficients = fit$coefficients,
    sp = fit$sp, full_sp = fit$full.sp,
    sig2 = fit$sig2, reml_scale = fit$reml.scale,
    score = as.numeric(fit$gcv.ubre), deviance = fit$deviance,
    edf = fit$edf, edf1 = fit$edf1, edf2 = fit$edf2, edf_total = sum(fit$edf),
    edf_smooth = s$edf, r_sq = s$r.sq, dev_expl = s$dev.expl,
    Vp = fit$Vp, Ve = fit$Ve, rank = fit$rank,
    score_grad = fit$outer.info$grad, score_hess = fit$outer.info$hess,
    n = length(fit$y), nsdf = fit$nsdf, min_edf = fit$min.edf,
    residual_df = fit$df.residual,
    smooths = lapply(unname(fit$smooth), smooth_parts)))
}
