import { join } from "node:path";
import { expect, it } from "vitest";
import { exitCode } from "../exit-code.ts";
import { inFolder, runCoinslot } from "../testing/run-coinslot.ts";

it("coinslot keys creates a key that is shown once, lists its hash, and revokes it", async () => {
  await inFolder(async (folder) => {
    const env = { INDEXER_DATABASE: `sqlite:${join(folder, "indexer.db")}` };
    const keys = (...args: string[]) => runCoinslot(["keys", ...args], { env });
    const wish = [
      "--owner",
      "shop",
      "--label",
      "the till",
      "--max",
      "1000",
      "--time-window",
      "10s",
    ];
    const created = await keys("create", ...wish);
    expect(created.code).toBe(exitCode.done);
    expect(created.out).toMatch(/^csk_\S+\n$/);

    const listed = await keys("list", "--json");
    const [key, ...others] = JSON.parse(listed.out);
    expect(others).toEqual([]);
    expect(key).toMatchObject({ owner: "shop", label: "the till", limit: { max: 1000 } });
    expect(listed.out).not.toContain(created.out.trim());

    expect(await keys("revoke", key.hashedKey)).toMatchObject({ code: exitCode.done });
    expect((await keys("list", "--owner", "shop")).err).toBe("No keys.\n");
  });
});

it("coinslot keys reports wrong arguments", async () => {
  const env = { INDEXER_DATABASE: "sqlite::memory:" };
  const owner = await runCoinslot(["keys", "create"], { env });
  expect(owner.code).toBe(exitCode.usage);
  expect(owner.err).toContain("--owner <name>");
  const time = await runCoinslot(["keys", "create", "--owner", "me", "--ttl", "soon"], { env });
  expect(time.code).toBe(exitCode.usage);
  expect(time.err).toContain("30d");
});
