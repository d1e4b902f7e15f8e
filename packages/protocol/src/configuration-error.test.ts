import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { ConfigurationError } from "./configuration-error.ts";

test("an uncaught ConfigurationError prints its message without a stack trace", () => {
  const cause = new Error("refused");
  const error = new ConfigurationError("The seller", ["PAY_TO: is not set"], { cause });
  expect(error.stack).toBe("ConfigurationError: The seller cannot start:\n  - PAY_TO: is not set");
  expect(error.problems).toEqual(["PAY_TO: is not set"]);
  expect(error.cause).toBe(cause);

  const file = new URL("./configuration-error.ts", import.meta.url);
  const program = `
    import { ConfigurationError } from ${JSON.stringify(file.href)};
    throw new ConfigurationError("The seller", ["PAY_TO: is not set"]);`;
  const args = ["--import", import.meta.resolve("tsx"), "--input-type=module", "--eval", program];
  const { stderr, status } = spawnSync(process.execPath, args, { encoding: "utf8" });
  expect(status).toBe(1);
  expect(stderr).toContain("The seller cannot start:\n  - PAY_TO: is not set");
  expect(stderr).not.toMatch(/^\s+at /m);
});
