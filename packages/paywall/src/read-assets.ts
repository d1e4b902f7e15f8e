import { readFileSync } from "node:fs";
import * as z from "zod";

/** Script and style of the page, to be inlined. */
export interface Assets {
  script: string;
  style: string;
}

const manifestSchema = z.record(
  z.string(),
  z.object({
    file: z.string(),
    isEntry: z.boolean().optional(),
    css: z.array(z.string()).default([]),
  }),
);

/**
 * Reads the built assets.
 *
 * @throws where they are not built, or would end the element that they are inlined in
 */
export function readAssets(folder = new URL("../assets/", import.meta.url)): Assets {
  const manifest = manifestSchema.parse(JSON.parse(read(folder, "manifest.json")));
  const entry = Object.values(manifest).find(({ isEntry }) => isEntry === true);
  if (entry === undefined) throw new Error("The paywall's assets have no entry");
  const script = read(folder, entry.file);
  const style = entry.css.map((file) => read(folder, file)).join("");
  if (/<\/script|<!--/i.test(script) || /<\/style/i.test(style)) {
    throw new Error("The paywall's assets cannot be inlined");
  }
  return { script, style };
}

function read(folder: URL, name: string): string {
  try {
    return readFileSync(new URL(name, folder), "utf8");
  } catch (cause) {
    throw new Error("The paywall's page is not built: run `npm run pages`", { cause });
  }
}
