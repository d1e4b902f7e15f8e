import { readFileSync } from "node:fs";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { isWhole } from "./packages/devnet/src/effort.ts";

// `import` and `require` are added where they belong; named here, they would hold for every package
// in both.
const conditions = ["source", "node"];

/**
 * Files that load modules as another process would: two versions of Express side by side, or a way
 * to sign that nothing takes back.
 */
const isolated = [
  "packages/express/src/routes/mixed-express-4.test.ts",
  "packages/facilitator/src/channels/sales/signed-anew.test.ts",
];

/** Files that take a minute or so, and belong to whole runs alone: `.ci/nightly`. */
const nightly = isWhole ? [] : ["test/faults/ledger-outages.test.ts"];

/** The condition "source" of one names TypeScript that Node does not load; the other imports it. */
const inlined = ["eventsource-parser", "mppx"];

/** Folders whose files take up to minutes: chains, processes and faults. */
const long = /\/(?:faults|apps|e2e|interop|cli\/src|bridge\/src)\//;

/** Long files first: none of them is left to one worker while the others have nothing to do. */
class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return [true, false].flatMap((isLong) =>
      sorted.filter(({ moduleId }) => long.test(moduleId) === isLong),
    );
  }
}

// biome-ignore lint/style/noDefaultExport: the test runner reads the default export.
export default defineConfig({
  plugins: [{ name: "inlined", enforce: "pre", load: loadInlined }],
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    // Tests wait half of their time, for blocks, locks and time limits: four workers for two cores.
    maxWorkers: 4,
    sequence: { sequencer: LongFilesFirst },
    retry: 0,
    allowOnly: false,
    projects: [
      {
        extends: true,
        test: {
          ...shared("tests"),
          include: ["{packages,apps}/*/src/**/*.test.ts", "{test,bench,site}/**/*.test.ts"],
          exclude: ["**/node_modules/**", ...isolated, ...nightly],
          // Loading viem, Express and zod anew for each of 320 files took two thirds of the
          // processor's time.
          isolate: false,
        },
      },
      { extends: true, test: { ...shared("isolated tests"), include: isolated } },
    ],
  },
});

/** Without its source map, which the package does not hold. */
function loadInlined(id: string) {
  const isInlined = inlined.some((name) => id.includes(`/node_modules/${name}/`));
  return isInlined ? { code: readFileSync(id, "utf8"), map: null } : undefined;
}

function shared(name: string) {
  return {
    name,
    globalSetup: [
      "packages/devnet/src/test-directory.ts",
      "packages/devnet/src/test-postgres.ts",
      "scripts/pages.mjs",
    ],
    setupFiles: ["packages/devnet/src/seed-properties.ts"],
    // Limits end what hangs. They measure nothing: a busy machine takes ten times as long.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // A condition costs only the time until it holds: the default of a second is missed by a busy
    // machine.
    expect: { poll: { timeout: 20_000 } },
    server: { deps: { inline: inlined } },
  };
}
