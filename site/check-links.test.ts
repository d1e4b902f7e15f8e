import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { checkLinks } from "./check-links.ts";

/** A built site with these files. */
function built(files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), "coinslot-site-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

it("accepts links to pages, folders, anchors, assets and other hosts", () => {
  const folder = built({
    "index.html": '<a href="/shop/docs/a.html#b">a</a><a href="/shop/docs/">docs</a>',
    "docs/index.html": '<a href="a.html">a</a><a href="https://host.example/">out</a>',
    "docs/a.html": '<h2 id="b">b</h2><a href="#b">b</a><link rel="icon" href="/shop/icon.svg">',
    "icon.svg": "<svg/>",
  });
  expect(checkLinks(folder, "/shop/")).toEqual({ links: 5, faults: [] });
});

it("reports a missing page, a missing anchor, and what a page loads from another host", () => {
  const folder = built({
    "index.html":
      '<a href="gone.html">gone</a><a href="#gone">gone</a><script src="https://host.example/x.js"></script>',
  });
  expect(checkLinks(folder, "/").faults).toEqual([
    "index.html links to gone.html: no such page",
    "index.html links to #gone: no such anchor",
    "index.html loads https://host.example/x.js",
  ]);
});
