test_that("the R of docs/r.md runs as it stands there", {
  page <- file.path("..", "..", "docs", "r.md")
  skip_if_not(file.exists(page), "docs/r.md: this is not the repository")
  skip_without_python()
  lines <- readLines(page, encoding = "UTF-8")
  starts <- grep("^```r$", lines)
  expect_gt(length(starts), 0)
  for (start in starts) {
    end <- start + which(lines[-seq_len(start)] == "```")[1]
    code <- lines[seq(start + 1, end - 1)]
    code <- code[!grepl("RETICULATE_PYTHON", code)] # this session has its Python
    results <- new.env()
    expect_error(eval(parse(text = code), results), NA)
    expect_s3_class(results$private, "dp_affr")
  }
})
