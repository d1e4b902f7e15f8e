import { readdirSync, readFileSync } from "node:fs";
import { defineConfig } from "tsdown";

const publicPackages = readdirSync("packages")
  .map((name) => `packages/${name}`)
  .filter((folder) => {
    const manifest: { private?: boolean } = JSON.parse(
      readFileSync(`${folder}/package.json`, "utf8"),
    );
    return manifest.private !== true;
  });

// biome-ignore lint/style/noDefaultExport: the build tool reads the default export.
export default defineConfig({
  // The paid indexer runs in a container, where nothing is compiled.
  workspace: { include: [...publicPackages, "apps/paid-indexer"] },
  // A command has a main beside its public face, and hosting a second one that loads less. A worker
  // thread is started by the name of its file.
  entry: ["src/{index,main,environment}.ts", "src/**/*-worker.js"],
  format: "esm",
  platform: "node",
  target: "node20.19",
  dts: true,
  // One output file for each source file, so that a stack trace names the room it comes from.
  unbundle: true,
  fixedExtension: false,
  report: false,
  logLevel: "warn",
});
