"""Links and pictures of the book.

As a preprocessor of mdBook: links from a page to files outside of docs/ become text, as the book does not hold these files; links to a
README.md lead to the index page that mdBook makes of it; a <picture> becomes two pictures, one of which the book's theme shows.

    book_links.py --check FOLDER      every link and picture of the built book leads to a file, and to an anchor in it
"""

import html.parser
import json
import os
import re
import sys
import urllib.parse

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?://|#)([^)#\s]+)(#[^)\s]*)?\)")
PICTURE = re.compile(
    r'<picture>\s*<source [^>]*srcset="([^"]+)">\s*<img ([^>]*?)src="([^"]+)"([^>]*)>\s*</picture>', re.S)


def outside(page, target):
    return os.path.normpath(os.path.join(os.path.dirname(page), target)).startswith("..")


def settled(page, text):
    text = LINK.sub(lambda m: m[1] if outside(page, m[2]) else m[0], text)
    text = re.sub(r"\]\(([^)#\s]*/)?README\.md(#[^)\s]*)?\)", lambda m: f"]({m[1] or ''}index.md{m[2] or ''})", text)
    both = r'<img class="light-only" \2src="\3"\4><img class="dark-only" \2src="\1"\4>'
    return PICTURE.sub(both, text)


def visit(items):
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            if chapter["path"]:
                chapter["content"] = settled(chapter["path"], chapter["content"])
            visit(chapter["sub_items"])


class Page(html.parser.HTMLParser):
    """The anchors and the targets of a page."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.targets = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors.update(attrs[name] for name in ("id", "name") if attrs.get(name))
        self.targets += [attrs[name] for name in ("href", "src") if attrs.get(name)]


def check(folder):
    names = [os.path.join(at, name) for at, _, files in os.walk(folder) for name in files if name.endswith(".html")]
    pages = {}
    for name in names:
        with open(name, encoding="utf-8") as file:
            pages[os.path.normpath(name)] = Page(file.read())
    wrong, checked = [], 0
    for name, page in pages.items():
        # The page for printing holds all others, and the page for missing ones has a base of its own.
        if os.path.basename(name) in ("print.html", "404.html", "toc.html"):
            continue
        for target in page.targets:
            parts = urllib.parse.urlsplit(target)
            if parts.scheme or target.startswith("//"):
                continue
            path = urllib.parse.unquote(parts.path)
            there = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
            checked += 1
            anchor = urllib.parse.unquote(parts.fragment)
            if not os.path.exists(there) or (anchor and there in pages and anchor not in pages[there].anchors):
                wrong.append(f"{os.path.relpath(name, folder)}: {target}")
    if wrong or not checked:
        sys.exit("links of the book that lead nowhere:\n" + "\n".join(sorted(set(wrong))))
    print(f"{checked} links in {len(pages)} pages lead somewhere")


def main():
    if sys.argv[1:2] == ["--check"]:
        return check(sys.argv[2])
    if sys.argv[1:2] == ["supports"]:
        return
    _, book = json.load(sys.stdin)
    visit(book.get("items") or book.get("sections"))
    json.dump(book, sys.stdout)


if __name__ == "__main__":
    main()
