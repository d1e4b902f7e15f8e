import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { buildPages } from "../../scripts/pages.mjs";
import { root } from "../docs/code-block.ts";

const manifestSchema = z.record(
  z.string(),
  z.object({ file: z.string(), css: z.array(z.string()).optional() }),
);

let folder: string;
const assets = () => join(folder, "packages/shop/assets");

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "coinslot-build-"));
  write("pnpm-lock.yaml", "");
  write("packages/plain/src/index.ts", "export {};");
  write(
    "packages/shop/pages/main.ts",
    'import "./main.css";\nimport { word } from "../word.ts";\ndocument.title = word;',
  );
  write(
    "packages/shop/pages/main.css",
    '@import "../../pages/src/tokens.css";\nbody { margin: 0 }',
  );
  write("packages/shop/word.ts", 'export const word: string = "first";');
  write("packages/pages/src/tokens.css", ":root { --ink: #123456 }");
});

afterAll(() => rmSync(folder, { recursive: true }));

function write(path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

/** The built script and style sheet, by the manifest. */
function readBuilt(): { files: string[]; script: string; style: string } {
  const manifest = manifestSchema.parse(
    JSON.parse(readFileSync(join(assets(), "manifest.json"), "utf8")),
  );
  const entry = manifest["main.ts"];
  const read = (file = "") => readFileSync(join(assets(), file), "utf8");
  return {
    files: [entry?.file ?? "", ...(entry?.css ?? [])],
    script: read(entry?.file),
    style: read(entry?.css?.[0]),
  };
}

describe("the build of pages", () => {
  it("builds hashed files that a manifest names, and then nothing", async () => {
    expect(await buildPages(folder)).toEqual(["shop"]);
    const { files, script, style } = readBuilt();
    expect(files).toEqual([
      expect.stringMatching(/^main-[\w-]{8}\.js$/),
      expect.stringMatching(/^main-[\w-]{8}\.css$/),
    ]);
    expect(script).toContain("first");
    expect(style).toContain("#123456");
    expect(await buildPages(folder)).toEqual([]);
  });

  it.each([
    ["an imported source", "packages/shop/word.ts", 'export const word = "second";'],
    ["an imported style sheet", "packages/pages/src/tokens.css", ":root { --ink: #654321 }"],
    ["the lock file", "pnpm-lock.yaml", "lockfileVersion: 9"],
  ])("builds again after a change of %s, and keeps no file of before", async (_, path, text) => {
    write(path, text);
    expect(await buildPages(folder)).toEqual(["shop"]);
    expect(readdirSync(assets()).toSorted()).toEqual(
      [...readBuilt().files, "manifest.json"].toSorted(),
    );
  });

  it("builds again where the built files are gone", async () => {
    rmSync(assets(), { recursive: true });
    expect(await buildPages(folder)).toEqual(["shop"]);
  });

  it("serves whole pages where two processes build at once", async () => {
    write("packages/shop/word.ts", 'export const word = "third";');
    await Promise.all([buildPages(folder), buildPages(folder)]);
    expect(readBuilt().script).toContain("third");
  });

  it("fails with the place of a wrong source", async () => {
    write("packages/shop/word.ts", "export const word = ;");
    await expect(buildPages(folder)).rejects.toThrow("word.ts");
  });
});

describe("a published package with pages", () => {
  const packages = readdirSync(join(root, "packages")).filter((name) =>
    readdirSync(join(root, "packages", name)).includes("pages"),
  );
  it("lists its assets among its files", () => {
    const files = z.object({ files: z.array(z.string()) });
    const lacking = packages.filter((name) => {
      const text = readFileSync(join(root, "packages", name, "package.json"), "utf8");
      return !files.parse(JSON.parse(text)).files.includes("assets");
    });
    expect(lacking).toEqual([]);
  });
});
