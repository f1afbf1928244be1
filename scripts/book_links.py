"""A preprocessor of mdBook: links from a page to files outside of docs/ become text, as the book does not hold these files;
<picture> elements become two pictures of which the book's theme shows one."""

import json
import os
import re
import sys

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?://|#)([^)#\s]+)(#[^)\s]*)?\)")
PICTURE = re.compile(
    r'<picture>\s*<source [^>]*srcset="([^"]+)">\s*<img ([^>]*?)src="([^"]+)"([^>]*)>\s*</picture>', re.S)


def outside(page, target):
    return os.path.normpath(os.path.join(os.path.dirname(page), target)).startswith("..")


def settled(page, text):
    text = LINK.sub(lambda m: m[1] if outside(page, m[2]) else m[0], text)
    both = r'<img class="light-only" \2src="\3"\4><img class="dark-only" \2src="\1"\4>'
    return PICTURE.sub(both, text)


def visit(items):
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            if chapter["path"]:
                chapter["content"] = settled(chapter["path"], chapter["content"])
            visit(chapter["sub_items"])


def main():
    if sys.argv[1:2] == ["supports"]:
        return
    _, book = json.load(sys.stdin)
    visit(book.get("items") or book.get("sections"))
    json.dump(book, sys.stdout)


if __name__ == "__main__":
    main()
