"""Measure the English that people read: ``python docs/_ext/plain_english.py``.

It reads pages, public docstrings, error texts, notebooks, R's pages, the help of commands, and what a certificate says.
A page, a notebook, a command, or one such kind of text in a file passes or fails as a whole. The limits: 20 words a
sentence on average, 35 in the longest, one semicolon and one colon a sentence, no forbidden words. Code, tables,
formulas, headings, references and literal names are not sentences.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

MEAN, LONGEST = 20.0, 35
FEW = 5
"""Sentences below which there is no mean to speak of: the longest counts alone."""
SEMICOLONS = COLONS = 1

FORBIDDEN = (
    r"honestly|honest (?:numbers?|figures?|bands?|intervals?|(?:standard )?errors?|coverage)",
    r"of which",
    r"zeros and ones",
    r"who is sure",
    r"hints?,? not walls",
    r"the law of(?! (?:total|large|iterated))",
    r"whose each",
    r"(?:errors?|intervals?|bands?|tests?|fits?|models?|terms?|ledgers?) (?:that |which )?(?:do not |does not )?knows?",
    r"(?:fits?|models?|priors?) believes?",
    r"believed (?:law|before|of)",
    r"(?:is|are|was|were|be) told(?! apart)",
    r"nobody's problem",
    r"got lost on the way",
    r"do as well",
)
"""What rules 3 and 4 of the design and rule 2 (subjects that cannot act) exclude: the wordings that were found."""

WRONG = re.compile(rf"(?<![\w-])(?:{'|'.join(FORBIDDEN)})(?![\w-])", re.IGNORECASE)
ABBREVIATED = re.compile(r"\b(?:e\.g|i\.e|cf|vs|et al|p|pp|Fig|Eq|resp|approx|Dr)\.$")
END = re.compile(r"(?<=[.!?])[\"'”)*_]*\s+(?=[\"'“(*_]*[A-Z0-9\u0370-\u03ff]|`|LITERAL)")
LITERAL, FORMULA = "LITERAL", "FORMULA"


@dataclass
class Measured:
    """Sentences of one page, or of one file's docstrings or errors."""

    name: str
    sentences: list[str] = field(default_factory=list)

    @property
    def lengths(self) -> list[int]:
        """Words of every sentence."""
        return [words(sentence) for sentence in self.sentences] or [0]

    @property
    def mean(self) -> float:
        """Words a sentence."""
        return sum(self.lengths) / len(self.lengths)

    @property
    def is_long(self) -> bool:
        """Whether the mean is too large, of enough sentences."""
        return len(self.sentences) >= FEW and self.mean > MEAN

    @property
    def forbidden(self) -> list[str]:
        """Forbidden words, as they stand."""
        return [hit[0].lower() for sentence in self.sentences for hit in WRONG.finditer(sentence)]

    @property
    def joined(self) -> list[str]:
        """Sentences of several semicolons or colons."""
        return [own for own in self.sentences if own.count(";") > SEMICOLONS or colons(own) > COLONS]

    @property
    def passes(self) -> bool:
        """Whether it keeps all limits."""
        return not self.is_long and max(self.lengths) <= LONGEST and not self.joined and not self.forbidden

    def faults(self) -> list[str]:
        """Each sentence that breaks a rule, after what it breaks."""
        found = [f"mean of {self.mean:.1f} words"] if self.is_long else []
        for own in self.sentences:
            why = [f"{words(own)} words"] if words(own) > LONGEST else []
            why += ["semicolons or colons"] if own in self.joined else []
            why += [hit[0] for hit in WRONG.finditer(own)]
            found += [f"{', '.join(why)}: {own}"] if why else []
        return found


def words(sentence: str) -> int:
    """Words of a sentence: what stands between spaces and has a letter or a digit."""
    return sum(any(sign.isalnum() for sign in word) for word in sentence.split())


def colons(sentence: str) -> int:
    """Colons of a sentence, without those in times and ratios."""
    return len(re.findall(r":(?=\s|$)", sentence))


def sentences(paragraph: str) -> list[str]:
    """Sentences of a paragraph of plain text; those without two words are labels."""
    found: list[str] = []
    for part in END.split(re.sub(r"\s+", " ", paragraph).strip()):
        if found and ABBREVIATED.search(found[-1]):
            found[-1] += f" {part}"
        else:
            found.append(part)
    return [sentence for sentence in found if words(sentence) > 1]


def plain(text: str) -> str:
    """Text without marks: links as their words, literals and formulas as one word each."""
    text = re.sub(r"\{[^{}\n]*['\"][^{}\n]*\}", f" {LITERAL} ", text)
    text = re.sub(r"``[^`]+``|`[^`]+`(?:_{1,2})?", f" {LITERAL} ", re.sub(r":\w+:`", "`", text))
    text = re.sub(r"\$\$.+?\$\$|\$[^$\n]+\$", f" {FORMULA} ", text, flags=re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"<[^<>\n]+>", " ", text)
    text = re.sub(r"\s+([,.;:!?)])", r"\1", text)
    return re.sub(r"\*\*?|(?<!\w)_|_(?!\w)", "", text)


def of_page(text: str) -> list[str]:
    """Sentences of a page in Markdown."""
    text = re.sub(r"\A---\n.*?^---$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^( *)(```+|~~~+).*?^\1\2\s*?$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^\$\$.*?\$\$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^(?:\||#|:{3,}|:[\w-]+:|!\[|\(\S+\)=$).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^(\s*(?:[*+-]|\d+\.) )", r"\n\1", text, flags=re.MULTILINE)
    found = []
    for paragraph in re.split(r"\n\s*\n", text):
        bare = re.sub(r"^\s*(?:[*+-]|\d+\.) ", "", paragraph)
        if bare != paragraph or not re.match(r"\n*(?: {4}|\t)", paragraph):
            found += sentences(plain(bare))
    return found


SKIPPED = {"Examples", "References", "See Also", "Methods"}


def of_docstring(text: str) -> list[str]:
    """Sentences of a docstring in the form of numpydoc: its text, and what is said of arguments and results."""
    found, section, lines = [], "", [*text.splitlines(), ""]
    paragraph: list[str] = []
    for i, line in enumerate(lines):
        below = lines[i + 1] if i + 1 < len(lines) else ""
        if re.fullmatch(r"-{3,}", below.strip()) and line.strip():
            section, line = line.strip(), ""
        is_label = section in ("Parameters", "Attributes", "Returns", "Raises", "Yields") and not line.startswith(" ")
        is_aside = re.match(r"\s*(?:>>>|\.\.\s|-{3,}$|\|)|.*::$", line) or section in SKIPPED
        starts = re.match(r"\s*(?:[*+-]|\d+\.) ", line)
        if not line.strip() or is_label or is_aside or starts:
            found += sentences(plain(" ".join(paragraph)))
            paragraph = []
        if line.strip() and not (is_label or is_aside):
            paragraph.append(re.sub(r"^\s*(?:[*+-]|\d+\.) ", "", line).strip())
    return found


def of_notebook(script: str) -> list[str]:
    """Sentences of a notebook: its cells in Markdown, as the ``.py`` of the pair has them."""
    cells = re.findall(r"^# %% \[markdown\].*\n((?:#.*\n)*)", f"{script}\n", re.MULTILINE)
    return [sentence for cell in cells for sentence in of_page(re.sub(r"^# ?", "", cell, flags=re.MULTILINE))]


def of_r(code: str) -> list[str]:
    """Sentences of R's pages: roxygen's comments in a file of R, without examples, references and links."""
    lines = (line[2:].removeprefix(" ") if line.startswith("#'") else "@" for line in code.splitlines())
    found = []
    for part in re.split(r"^@", "\n".join(["@", *lines]), flags=re.MULTILINE):
        tag = re.match(r"return|section [^\n]*:|param \S+|(?=\n)", part)
        if tag:
            text = re.sub(r"\\d?eqn\{(?:[^{}]|\{[^{}]*\})*\}", f" {FORMULA} ", part[tag.end() :])
            text = re.sub(r"\\(?:code|doi|pkg)\{([^{}]*)\}", r"`\1`", text)
            found += of_page(re.sub(r"\[([^][]+)\]\[[^][]+\]|\[(\w+\(\))\]", r"`\1\2`", text))
    return found


def texts_of_code(node: ast.AST) -> Iterator[str]:
    """Texts of a program but its docstrings, errors and keys, values as one word."""
    for child in node.values if isinstance(node, ast.Dict) else ast.iter_child_nodes(node):
        if isinstance(child, ast.Raise) or (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)):
            continue
        whole = list(_texts(child)) if isinstance(child, ast.Constant | ast.JoinedStr | ast.BinOp) else []
        yield from whole or texts_of_code(child)


def texts_of_errors(tree: ast.AST) -> Iterator[str]:
    """Texts of a file's errors and warnings: what is raised or warned with, values as one word."""
    for node in ast.walk(tree):
        call = node.exc if isinstance(node, ast.Raise) else node
        if not isinstance(call, ast.Call):
            continue
        called = ast.unparse(call.func).rpartition(".")[2]
        if isinstance(node, ast.Raise) or called == "warn":
            yield from (text for part in call.args for text in _texts(part))


def _texts(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else LITERAL for part in node.values)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield "".join([*_texts(node.left), *_texts(node.right)])
    elif isinstance(node, ast.IfExp):
        yield from (text for part in (node.body, node.orelse) for text in _texts(part))


def pages() -> list[Measured]:
    """Pages of the repository, each measured."""
    first = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "AGENTS.md", "vignettes/fdadp.Rmd")]
    files = [*first, *sorted((ROOT / "docs").rglob("*.md"))]
    names = [path.relative_to(ROOT).as_posix() for path in files if "_build" not in path.parts]
    return [Measured(name, of_page((ROOT / name).read_text(encoding="utf-8"))) for name in names]


def docstrings() -> list[Measured]:
    """Docstrings of public names and of their public methods, by the file that has them."""
    from api_pages import OWN

    found: dict[str, Measured] = {}
    for module, names in OWN.items():
        for name in names:
            value = getattr(importlib.import_module(module), name)
            methods = vars(value).items() if inspect.isclass(value) else ()
            for own in (value, *(each for key, each in methods if not key.startswith("_"))):
                _measure(found, own)
    return [found[name] for name in sorted(found)]


def _measure(found: dict[str, Measured], value: Any) -> None:
    value = getattr(value, "fget", None) or getattr(value, "__func__", None) or value
    text = getattr(value, "__doc__", None)
    try:
        file = Path(inspect.getsourcefile(value) or "").resolve()
    except TypeError:  # a value, no code
        return
    if text and file.is_relative_to(ROOT):
        name = f"docstrings of {file.relative_to(ROOT).as_posix()}"
        found.setdefault(name, Measured(name)).sentences += of_docstring(inspect.cleandoc(text))


def of_certificate(code: str) -> list[str]:
    """Sentences of a program that writes pages: its texts, cut at marks of headings, paragraphs, items and cells."""
    marks = r"</?(?:h\d|p|li|ul|div|section|table|t[dhr])\b[^<>]*>"
    return [own for text in texts_of_code(ast.parse(code)) for own in of_texts(re.split(marks, text))]


def of_texts(texts: Iterable[str]) -> list[str]:
    """Sentences of texts, without the value that some begin with."""
    return [own for text in texts for own in sentences(re.sub(rf"^{LITERAL}: ", "", plain(text).strip()))]


def of_errors(code: str) -> list[str]:
    """Sentences of a program's errors and warnings."""
    return of_texts(texts_of_errors(ast.parse(code)))


FILES: dict[str, tuple[str, Callable[[str], list[str]]]] = {
    "errors": ("fdadp/**/*.py", of_errors),
    "notebooks": ("notebooks/*.py", of_notebook),
    "R pages": ("R/*.R", of_r),
    "certificate": ("fdadp/privacy/certificate/*.py", of_certificate),
}
"""What is measured file by file: where the files are, and what reads them."""


def of_files(kind: str, pattern: str, read: Callable[[str], list[str]]) -> list[Measured]:
    """What a reader finds in files, each measured; files without a sentence are left out."""
    found = [(path, read(path.read_text(encoding="utf-8"))) for path in sorted(ROOT.glob(pattern))]
    return [Measured(f"{kind} of {path.relative_to(ROOT).as_posix()}", own) for path, own in found if own]


def of_help(text: str) -> list[str]:
    """Sentences of the help of a command or an option, without its default, its examples and its JSON."""
    text = re.sub(r"\x08.*?(?=\n\n|\Z)", "", text, flags=re.DOTALL)
    return of_page(re.sub(r"\(default: (?:[^()]|\([^()]*\))*\)$", "", re.sub(r"\{.*\}", LITERAL, text)))


def helps() -> list[Measured]:
    """What ``--help`` says, by command: the command, its arguments and options."""
    from typer.main import get_command

    from fdadp.cli.main import app

    found, left = [], [("fdadp", get_command(app))]
    while left:
        name, command = left.pop(0)
        left += [(f"{name} {key}", own) for key, own in getattr(command, "commands", {}).items()]
        texts = [command.help, command.epilog, *(getattr(own, "help", None) for own in command.params)]
        found.append(Measured(f"help of {name}", [own for text in texts if text for own in of_help(text)]))
    return found


def table(measured: list[Measured]) -> list[str]:
    """A line for each: sentences, mean, longest, those of several semicolons or colons, forbidden words."""
    lines = [f"{'':64} {'sentences':>9} {'mean':>5} {'longest':>7} {'joined':>6} {'forbidden':>9}"]
    for own in measured:
        figures = f"{len(own.sentences):9} {own.mean:5.1f} {max(own.lengths):7} {len(own.joined):6}"
        lines.append(f"{own.name:64} {figures} {len(own.forbidden):9}  {'' if own.passes else 'fails'}".rstrip())
    return lines


def main(arguments: list[str]) -> int:
    """Print the figures and what is wrong; 1 if anything is. With names: what is to be mended in these."""
    kinds = {"pages": pages(), "docstrings": docstrings(), "help": helps()}
    kinds |= {kind: of_files(kind, *own) for kind, own in FILES.items()}
    measured = [own for kind in kinds.values() for own in kind]
    if arguments:
        for own in measured:
            if own.name.endswith(tuple(arguments)):
                print(*table([own])[1:], *own.faults(), sep="\n")
        return 0
    shown = kinds["pages"] + [own for kind in [*kinds][1:] for own in kinds[kind] if not own.passes]
    print(*table(shown), sep="\n")
    for kind, own in kinds.items():
        every = Measured(kind, [sentence for each in own for sentence in each.sentences])
        done = sum(each.passes for each in own)
        print(f"{kind}: {done} of {len(own)} pass; mean {every.mean:.1f}, longest {max(every.lengths)}, ", end="")
        print(f"{len(every.joined)} joined, {len(every.forbidden)} forbidden")
    wrong = [f"{own.name}: {fault}" for own in measured if not own.passes for fault in own.faults()]
    print("".join(f"{fault}\n" for fault in wrong), end="")
    print("plain English: ok" if not wrong else f"plain English: {len(wrong)} faults")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
