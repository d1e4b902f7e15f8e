import { readdirSync, statSync } from "node:fs";
import { join, posix } from "node:path";
import { describe, expect, it } from "vitest";
import { picturesFolder as folder, picturesIn } from "../../site/pictures.ts";
import { findDocuments, readDocument, root } from "./code-block.ts";

const maxBytes = 100_000;

const shown = findDocuments().flatMap((document) =>
  picturesIn(readDocument(document)).map((picture) => ({ document, ...picture })),
);
const files = readdirSync(join(root, folder)).toSorted();

describe("the pictures of the documents", () => {
  it("are all those of the folder, light and dark, and tell those who cannot see them", () => {
    const named = shown.flatMap(({ document, light, dark }) =>
      [light, dark].map((file) => posix.join(posix.dirname(document), file)),
    );
    expect([...new Set(named)].toSorted()).toEqual(files.map((file) => `${folder}/${file}`));
    for (const { document, light, dark, alt } of shown) {
      expect(light, document).toMatch(/-light\.png$/);
      expect(dark, document).toBe(light.replace(/-light\.png$/, "-dark.png"));
      expect(alt.length, `${document}: ${light}`).toBeGreaterThan(40);
    }
  });

  it("are small", () => {
    const large = files.filter((file) => statSync(join(root, folder, file)).size > maxBytes);
    expect(large).toEqual([]);
  });

  it("have one form, which the site reads", () => {
    const tags = findDocuments().flatMap((document) => [
      ...readDocument(document).matchAll(/<(?:picture|img)\b/g),
    ]);
    expect(tags).toHaveLength(2 * shown.length);
  });
});
