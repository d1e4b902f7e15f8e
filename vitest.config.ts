import { defineConfig } from "vitest/config";

// `import` and `require` are added where they belong; named here, they would hold for every package in both.
const conditions = ["source", "node"];

// biome-ignore lint/style/noDefaultExport: the test runner reads the default export.
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ["{packages,apps}/*/src/**/*.test.ts", "{test,bench}/**/*.test.ts"],
    globalSetup: ["packages/devnet/src/test-postgres.ts"],
    // Two workers fit two cores; every chain test starts an anvil of its own.
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    retry: 0,
    allowOnly: false,
  },
});
