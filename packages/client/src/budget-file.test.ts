import { execFile, spawnSync } from "node:child_process";
import { mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { createFileStore } from "./budget-file.ts";
import { emptyBudget, openBooking } from "./budget-state.ts";
import { describeHolder } from "./file-lock.ts";
import { countSignatures } from "./testing/counting-account.ts";
import { requirements, startSeller } from "./testing/seller.ts";
import { useTemporaryFolder } from "./testing/temporary-folder.ts";
import { useWorld } from "./testing/world.ts";

const world = useWorld();
const { keep, createFetch } = world;
const inFolder = useTemporaryFolder();

/** A seller of one thing for ten cents. */
async function startDearSeller() {
  return keep(await startSeller({ accepts: () => [requirements({ amount: "100000" })] }));
}

describe("a budget in a file", () => {
  it("outlives the process that spent it", async () => {
    const seller = await startDearSeller();
    const budget = { perDay: "$0.25", file: inFolder("budget.json") };
    await createFetch({ budget })(seller.url);
    await createFetch({ budget })(seller.url);
    await expect(createFetch({ budget })(seller.url)).rejects.toMatchObject({
      code: "over_budget",
    });
    expect(world.account().signatures()).toBe(2);
  });

  it("is shared by fetches that run at the same time", async () => {
    const seller = await startDearSeller();
    const budget = { perDay: "$0.30", file: inFolder("budget.json") };
    const fetches = Array.from({ length: 8 }, () => createFetch({ budget }));
    const calls = await Promise.allSettled(fetches.map((pay) => pay(seller.url)));
    expect(calls.filter(({ status }) => status === "fulfilled")).toHaveLength(3);
    expect(world.account().signatures()).toBe(3);
  });

  it.each(["before", "after"])(
    "is one budget under all of its names, linked %s it is there",
    async (when) => {
      const seller = await startDearSeller();
      const [file, link] = [inFolder("budget.json"), inFolder("link.json")];
      const payAs = (name: string) =>
        createFetch({ budget: { perDay: "$0.25", file: name } })(seller.url);
      if (when === "after") await payAs(file);
      await symlink("budget.json", link);
      await payAs(link);
      if (when === "before") await payAs(file);
      await expect(payAs(file)).rejects.toMatchObject({ code: "over_budget" });
      await expect(payAs(link)).rejects.toMatchObject({ code: "over_budget" });
    },
  );

  it("is one budget also where a link goes up from a linked folder", async () => {
    const seller = await startDearSeller();
    const [folder, file] = [inFolder("data/shop"), inFolder("data/budget.json")];
    await mkdir(folder, { recursive: true });
    await symlink(folder, inFolder("shop"));
    await symlink("../budget.json", inFolder("shop/link.json"));
    const payAs = (name: string) =>
      createFetch({ budget: { perDay: "$0.10", file: name } })(seller.url);
    await payAs(inFolder("shop/link.json"));
    await expect(payAs(file)).rejects.toMatchObject({ code: "over_budget" });
  });

  it("has the booking on disk before anything is signed", async () => {
    const seller = await startDearSeller();
    const file = inFolder("budget.json");
    let atSigning = "";
    const account = countSignatures(world.devnet().accounts.buyer, async () => {
      atSigning = await readFile(file, "utf8");
    });
    await createFetch({ account, budget: { file } })(seller.url);
    expect(JSON.parse(atSigning)).toMatchObject({
      open: [{ host: "127.0.0.1", pot: "usd", amount: "100000000000000000" }],
    });
    expect(JSON.parse(await readFile(file, "utf8"))).toMatchObject({
      spent: [{ host: "127.0.0.1", pot: "usd", amount: "100000000000000000" }],
      open: [],
    });
  });

  it("does not grow with the number of payments, and leaves nothing else behind", async () => {
    const seller = keep(await startSeller());
    const file = inFolder("budget.json");
    const pay = createFetch({ budget: { file } });
    await Promise.all(Array.from({ length: 20 }, () => pay(seller.url)));
    const state: unknown = JSON.parse(await readFile(file, "utf8"));
    expect(state).toMatchObject({ spent: [{ amount: "20000000000000000" }], open: [] });
    expect(await readdir(dirname(file))).toEqual(["budget.json"]);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
  });

  it.each([
    ["empty", ""],
    ["cut off", '{"version":1,"spent":[{"hour":4'],
    ["of another kind", '{"name":"coinslot"}'],
    ["from the future", '{"version":2,"spent":[],"open":[]}'],
    [
      "negative",
      '{"version":1,"spent":[{"hour":1,"pot":"usd","host":"a","amount":"-5"}],"open":[]}',
    ],
  ])("that is %s is refused, not overwritten, and nothing is signed", async (_name, text) => {
    const seller = await startDearSeller();
    const file = inFolder("budget.json");
    await writeFile(file, text);
    await expect(createFetch({ budget: { file } })(seller.url)).rejects.toMatchObject({
      code: "budget_file_corrupt",
    });
    expect(await readFile(file, "utf8")).toBe(text);
    expect(world.account().signatures()).toBe(0);
    expect(seller.paid).toHaveLength(0);
  });

  it("that cannot be read or written is refused, and nothing is signed", async () => {
    const seller = await startDearSeller();
    await mkdir(inFolder("folder.json"));
    for (const file of [inFolder("folder.json"), inFolder("missing/budget.json")]) {
      await expect(createFetch({ budget: { file } })(seller.url)).rejects.toMatchObject({
        code: "budget_file_unavailable",
      });
    }
    expect(world.account().signatures()).toBe(0);
  });

  it("is not written by a change that changes nothing", async () => {
    const file = inFolder("budget.json");
    await createFileStore(file).update((state) => ({ state, result: 0 }));
    await expect(stat(file)).rejects.toMatchObject({ code: "ENOENT" });
  });

  it("reads what it wrote, to the last digit", async () => {
    const store = createFileStore(inFolder("budget.json"));
    const booking = {
      id: {
        network: "eip155:9745",
        asset: `0x${"11".repeat(20)}`,
        payer: `0x${"22".repeat(20)}`,
        nonce: `0x${"33".repeat(32)}`,
      },
      validBefore: 1_700_000_300,
      hour: 472_222,
      pot: "usd",
      host: "shop.example",
      amount: 2n ** 256n - 1n,
    } as const;
    const state = openBooking(emptyBudget, booking);
    await store.update(() => ({ state, result: 0 }));
    await store.update((read) => {
      expect(read).toEqual(state);
      return { state: read, result: 0 };
    });
  });
});

/** The command line of a process that books so many payments and prints how many it could. */
function spendInProcess(file: string, wanted: number): [string, ...string[]] {
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
  const script = fileURLToPath(new URL("./testing/spend-in-process.ts", import.meta.url));
  const args = ["--conditions=source", "--import", tsx, script, file, String(wanted)];
  return [process.execPath, ...args];
}

describe("a disk that takes nothing", () => {
  it("stops payments, and is left as it was", async () => {
    const file = inFolder("budget.json");
    const inLimits = ["-c", 'ulimit -f 0; exec "$@"', "sh", ...spendInProcess(file, 1)];
    const { stderr } = spawnSync("sh", inLimits, { encoding: "utf8" });
    expect(stderr).toContain("budget_file_unavailable");
    expect(stderr).toContain("EFBIG");
    expect(await readdir(dirname(file))).toEqual([]);
  });
});

describe("two processes on one budget file", () => {
  it("never spend more than one of them may, also when a third one died with the lock", async () => {
    const file = inFolder("budget.json");
    const dead = spawnSync(process.execPath, ["-e", ""]);
    await writeFile(`${file}.lock`, JSON.stringify(describeHolder(dead.pid)));
    const run = async () => {
      const [command, ...args] = spendInProcess(file, 40);
      const { stdout } = await promisify(execFile)(command, args);
      return Number(stdout);
    };
    const [first, second] = await Promise.all([run(), run()]);
    expect(first + second).toBe(50);
    expect(Math.min(first, second)).toBeGreaterThan(0);
  });
});
