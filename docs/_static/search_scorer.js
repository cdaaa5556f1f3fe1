// What a search shows first: pages of the guide, then examples and theory, then single functions, then what was tried.
// A word in the title of a page counts more than one in a heading or in its text. Lists of all pages come last.
// Who asks for a name with a dot or an underscore wants the function.
// The object is Sphinx's own, with its weights; `score` is called for each hit (docs/conf.py, html_search_scorer).
const FOLDERS = { "": 20, theory: 10, gallery: 10, notebooks: 5, r: 5, extend: -5, project: -10, decisions: -15, benchmarks: -15 };
const LISTS = ["guide", "index"];

const asked = (new URLSearchParams(window.location.search).get("q") ?? "").toLowerCase().split(/\s+/);
const stems = asked.map((word) => word.replace(/s$/, "")).filter((word) => word.length > 1);

var Scorer = {
  score: (result) => {
    const [page, title, anchor, , score, , kind] = result;
    if (kind === "object" && /[._]/.test(asked.join(""))) return score + 50;
    const place = FOLDERS[page.includes("/") ? page.split("/")[0] : ""] ?? 0;
    const named = anchor ? -3 : 10 * stems.filter((word) => title.toLowerCase().includes(word)).length;
    return score + place + named - title.length / 50 - (LISTS.includes(page) ? 20 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
