import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { loadEnvironment } from "./load-environment.ts";
import { inFolder } from "./testing/run-coinslot.ts";

it("adds the folder's .env file to the environment, which wins", async () => {
  await inFolder(async (folder) => {
    expect(loadEnvironment({ A: "1" }, folder)).toEqual({ A: "1" });
    writeFileSync(join(folder, ".env"), 'A=2\nB="two words"\n');
    expect(loadEnvironment({ A: "1" }, folder)).toEqual({ A: "1", B: "two words" });
    // Set and empty is as good as not set.
    expect(loadEnvironment({ A: "" }, folder)).toMatchObject({ A: "2" });
  });
});

it("passes over every other form of what the environment says", async () => {
  await inFolder(async (folder) => {
    writeFileSync(join(folder, ".env"), "WALLET_SEED_PHRASE=words\nFACILITATOR_PRIVATE_KEY=0x1\n");
    const environment = { WALLET_PRIVATE_KEY_FILE: "/run/secrets/key" };
    expect(loadEnvironment(environment, folder)).toEqual({
      ...environment,
      FACILITATOR_PRIVATE_KEY: "0x1",
    });
  });
});

it("reads another file when one is named, which then has to be there", async () => {
  await inFolder(async (folder) => {
    const file = join(folder, "other.env");
    expect(() => loadEnvironment({ COINSLOT_ENV_FILE: file }, folder)).toThrow("cannot be read");
    writeFileSync(file, "A=1\n");
    expect(loadEnvironment({ COINSLOT_ENV_FILE: file }, folder)).toMatchObject({ A: "1" });
  });
});
