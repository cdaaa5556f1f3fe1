# r_pages.R OUT: the pages of R for the site: HTML of each man/*.Rd, after a line with its title, and the vignette as it ran.
# Called by .ci/r-package.sh pages, with fdadp in the library and FDADP_REQUIRE=1, so that a vignette that did not run is an error.
out <- commandArgs(TRUE)[1]
dir.create(out, showWarnings = FALSE, recursive = TRUE)

pages <- list.files("man", "\\.Rd$")
names(pages) <- sub("\\.Rd$", "", pages)
# Links to our own topics lead to our pages; those to other packages are shown without.
topics <- unlist(lapply(names(pages), function(name) {
  tags <- tools::parse_Rd(file.path("man", pages[[name]]))
  aliases <- Filter(function(part) attr(part, "Rd_tag") == "\\alias", tags)
  setNames(rep(paste0(name, ".html"), length(aliases)), vapply(aliases, function(part) trimws(as.character(part[[1]])), ""))
}))
for (name in names(pages)) {
  file <- tempfile()
  suppressWarnings( # of links to other packages
    tools::Rd2HTML(file.path("man", pages[[name]]), out = file, Links = topics, Links2 = character(), stylesheet = "")
  )
  html <- paste(readLines(file, encoding = "UTF-8"), collapse = "\n")
  title <- trimws(gsub("<[^>]+>", "", sub(".*?<h2[^>]*>(.*?)</h2>.*", "\\1", html)))
  body <- sub(".*?</h2>", "", html)
  body <- sub("<hr ?/?><div.*?\\[Package.*", "", body)
  body <- sub("</div>\\s*</body>.*", "", sub("</main>.*", "", body))
  body <- gsub('<a href="(?![A-Za-z0-9_.-]+\\.html")[^"]*">(.*?)</a>', "\\1", body, perl = TRUE) # to other packages
  linked <- regmatches(body, gregexpr('(?<=<a href=")[A-Za-z0-9_.-]+\\.html(?=")', body, perl = TRUE))[[1]]
  for (link in setdiff(linked, paste0(names(pages), ".html"))) {
    body <- gsub(paste0('<a href="', link, '">(.*?)</a>'), "\\1", body)
  }
  writeLines(enc2utf8(c(title, body)), file.path(out, paste0(name, ".html")), useBytes = TRUE)
}

started <- Sys.time()
work <- tempfile()
dir.create(work)
file.copy("vignettes/fdadp.Rmd", work)
made <- rmarkdown::render(file.path(work, "fdadp.Rmd"),
  rmarkdown::md_document("markdown_strict+pipe_tables+backtick_code_blocks+tex_math_dollars+fenced_code_attributes+raw_html"), quiet = TRUE)
text <- readLines(made, encoding = "UTF-8")
stopifnot(!any(grepl("nothing below was run", text)))
for (file in list.files(work, "\\.png$", recursive = TRUE)) {
  file.copy(file.path(work, file), file.path(out, basename(file)))
}
picture <- '<img src="(?:[^"]*/)?([A-Za-z0-9._-]+[.]png)" alt="([^"]*)"[^>]*>'
text <- gsub(picture, "![\\2](\\1)", text, perl = TRUE)
text <- sub("^``` *(\\{\\.)?r\\}?$", "```r", text)
title <- sub('^title: "(.*)"$', "\\1", readLines("vignettes/fdadp.Rmd", 2)[2])
seconds <- round(as.numeric(Sys.time() - started, units = "secs"))
note <- paste0("*Run by R ", getRversion(), " when this site was built.*")
writeLines(enc2utf8(c(paste("#", title), "", note, "", text)), file.path(out, "vignette.md"), useBytes = TRUE)
# R's tabs of pages for files of one's own, as they stand there, on the files that the first Python of the page makes.
run_tabs <- function(page, tabs, names) {
  lines <- readLines(page, encoding = "UTF-8")
  block <- function(start) lines[(start + 1):(min(which(lines == "```" & seq_along(lines) > start)) - 1)]
  starts <- which(lines == "```r")
  make <- file.path(work, "make.py")
  writeLines(block(which(lines == "```python")[1]), make)
  here <- setwd(work)
  on.exit(setwd(here))
  stopifnot(length(starts) == tabs, system2(Sys.getenv("RETICULATE_PYTHON"), make) == 0)
  source(exprs = parse(text = unlist(lapply(starts, block))), local = names, print.eval = TRUE)
  names
}
made <- run_tabs("docs/your-csv.md", 6, new.env())
stopifnot(file.exists(file.path(work, "certificate.html")), grepl("end to end", fdadp::ledger(made$model)$headline))
made <- run_tabs("docs/files.md", 7, new.env())
stopifnot(nobs(made$fit) == 300, grepl("end to end", fdadp::ledger(made$private)$headline))
cat(length(pages), "pages of R,", "the vignette in", seconds, "s\n")
