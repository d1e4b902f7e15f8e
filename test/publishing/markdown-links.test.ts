import { describe, expect, it } from "vitest";
import { replaceLinks } from "../../scripts/markdown-links.mjs";

const shout = (markdown: string) => replaceLinks(markdown, (target) => target.toUpperCase());

describe("the links of a Markdown page", () => {
  it.each([
    ["a file beside it", "[a](b.md)", "[a](B.MD)"],
    ["a file with an anchor", "[a](../c/d.md#e-f)", "[a](../C/D.MD#E-F)"],
    ["a file with a title", '[a](b.md "t")', '[a](B.MD "t")'],
    ["a link whose text is code", "[`a`](b)", "[`a`](B)"],
    ["a path with parentheses", "[a](b_(c).md)", "[a](B_(C).MD)"],
    ["two links in a line", "[a](b), [c](d)", "[a](B), [c](D)"],
  ])("are replaced where they lead to %s", (_, before, after) => {
    expect(shout(before)).toBe(after);
  });

  it.each([
    ["another host", "[a](https://host.example/b)"],
    ["a mail address", "[a](mailto:b@host.example)"],
    ["the same page", "[a](#b)"],
  ])("stay where they lead to %s", (_, link) => {
    expect(shout(link)).toBe(link);
  });

  it("stay in code", () => {
    const markdown = "`[a](b)` and\n\n```md\n[c](d)\n```\n";
    expect(shout(markdown)).toBe(markdown);
  });
});
