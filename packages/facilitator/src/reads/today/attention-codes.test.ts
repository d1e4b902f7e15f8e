import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { attentionCodes } from "./attention-codes.ts";

it("every runbook is a heading of the documentation, and the most urgent codes come first", () => {
  const docs = new URL("../../../../../docs/", import.meta.url);
  const anchorsOf = (page: string) =>
    [...readFileSync(new URL(page, docs), "utf8").matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
      title
        .toLowerCase()
        .replace(/[^\w\- ]/g, "")
        .replaceAll(" ", "-"),
    );
  for (const { runbook } of Object.values(attentionCodes)) {
    const [page = "", anchor] = runbook.split("#");
    if (anchor === undefined) expect(anchorsOf(page).length).toBeGreaterThan(0);
    else expect(anchorsOf(page)).toContain(anchor);
  }
  const ranks = Object.values(attentionCodes).map(({ urgency }) =>
    ["critical", "warning", "notice"].indexOf(urgency),
  );
  expect(ranks).toEqual([...ranks].sort());
});
