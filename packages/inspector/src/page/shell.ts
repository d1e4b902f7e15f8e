import { readFileSync } from "node:fs";
import * as z from "zod";

const manifestSchema = z.record(
  z.string(),
  z.object({
    file: z.string(),
    isEntry: z.boolean().optional(),
    css: z.array(z.string()).optional(),
  }),
);

/** A file of the page. */
export interface PageFile {
  type: string;
  body: Buffer;
}

/** The page's HTML, and its files by their paths. */
export interface Shell {
  html: string;
  files: ReadonlyMap<string, PageFile>;
}

const types: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
};

/**
 * Reads the built page.
 *
 * @throws Error where it was not built
 */
export function readShell(assets: URL): Shell {
  const text = readFileSync(new URL("manifest.json", assets), "utf8");
  const chunks = Object.values(manifestSchema.parse(JSON.parse(text)));
  const names = new Set(chunks.flatMap(({ file, css = [] }) => [file, ...css]));
  const files = new Map(
    [...names].map((name): [string, PageFile] => {
      const type = types[name.split(".").at(-1) ?? ""] ?? "application/octet-stream";
      return [`/assets/${name}`, { type, body: readFileSync(new URL(name, assets)) }];
    }),
  );
  const entry = chunks.find(({ isEntry }) => isEntry);
  const styles = (entry?.css ?? []).map((name) => `<link rel="stylesheet" href="/assets/${name}">`);
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Coinslot inspector</title>
<link rel="icon" href="data:,">
${styles.join("\n")}
<script type="module" src="/assets/${entry?.file ?? ""}"></script>
</head>
<body>
<div id="app"></div>
<noscript>This page needs JavaScript. The same is printed by <code>coinslot inspect</code>.</noscript>
</body>
</html>
`;
  return { html, files };
}
