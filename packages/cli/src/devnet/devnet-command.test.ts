import { expect, it } from "vitest";
import { exitCode } from "../exit-code.ts";
import { runCoinslot } from "../testing/run-coinslot.ts";

it.each([
  ["--chain-id", "0", "1 to 999999999"],
  ["--port", "65536", "0 to 65535"],
  // A block interval of zero would hang the chain.
  ["--block-time", "0", "1 to 999999999"],
  ["--block-time", "1.5", "1 to 999999999"],
])("coinslot devnet refuses %s %s, and lists the choices", async (option, value, range) => {
  const { code, err } = await runCoinslot(["devnet", option, value]);
  expect(err).toContain(`'${option} <`);
  expect(err).toContain(`expected a whole number from ${range}`);
  expect(code).toBe(exitCode.usage);
});
