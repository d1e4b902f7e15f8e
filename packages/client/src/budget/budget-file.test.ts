import { execFile, spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import {
  copyFile,
  link,
  mkdir,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { basename, dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { useProgram } from "@coinslot/devnet/use-program";
import { describe, expect, it } from "vitest";
import { countSignatures } from "../testing/counting-account.ts";
import { runScript } from "../testing/run-script.ts";
import { requirements, startSeller } from "../testing/seller.ts";
import { useTemporaryFolder } from "../testing/temporary-folder.ts";
import { useWorld } from "../testing/world.ts";
import { createFileStore } from "./budget-file.ts";
import { bookedIn, budgetStateSchema, emptyBudget, openBooking } from "./budget-state.ts";

const world = useWorld();
const { keep, createFetch } = world;
const inFolder = useTemporaryFolder();
const spendInProcess = useProgram(new URL("../testing/spend-in-process.ts", import.meta.url));
const bookUntilFull = useProgram(new URL("../testing/book-until-full.ts", import.meta.url));

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

  it("is shared by concurrent fetches", async () => {
    const seller = await startDearSeller();
    const budget = { perDay: "$0.30", file: inFolder("budget.json") };
    const fetches = Array.from({ length: 8 }, () => createFetch({ budget }));
    const calls = await Promise.allSettled(fetches.map((pay) => pay(seller.url)));
    expect(calls.filter(({ status }) => status === "fulfilled")).toHaveLength(3);
    expect(world.account().signatures()).toBe(3);
  });

  it("is refused, and not waited for, where it is a named pipe", async () => {
    const file = inFolder("budget.json");
    expect(spawnSync("mkfifo", [file]).status).toBe(0);
    const seller = await startDearSeller();
    const refused = await world.refusalOf(createFetch({ budget: { file } })(seller.url), seller);
    expect(refused.code).toBe("budget_file_unavailable");
  });

  it.each(["before", "after"])(
    "is one budget under all of its names, linked %s it exists",
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

  it("is one budget also for a link that climbs out of a linked folder", async () => {
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

  it("does not grow with the number of payments, and leaves no other file behind", async () => {
    const seller = keep(await startSeller());
    const file = inFolder("budget.json");
    const pay = createFetch({ budget: { file } });
    await Promise.all(Array.from({ length: 20 }, () => pay(seller.url)));
    const state: unknown = JSON.parse(await readFile(file, "utf8"));
    expect(state).toMatchObject({ spent: [{ amount: "20000000000000000" }], open: [] });
    expect(await readdir(dirname(file))).toEqual(["budget.json", "budget.json.lock"]);
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
  ])("is refused when it is %s, not overwritten, and nothing is signed", async (_name, text) => {
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

  it("loses what a killed process left behind an hour ago, and nothing else", async () => {
    const file = inFolder("left.json");
    const old = `${file}.11111111-1111-4111-8111-111111111111.tmp`;
    const fresh = `${file}.22222222-2222-4222-8222-222222222222.tmp`;
    const others = [`${file}.backup.tmp`, inFolder("own.json.tmp"), `${file}.old`];
    for (const each of [old, fresh, ...others]) await writeFile(each, "{}");
    const hourAgo = new Date(Date.now() - 3_700_000);
    for (const each of [old, ...others]) await utimes(each, hourAgo, hourAgo);
    const folder = `${file}.33333333-3333-4333-8333-333333333333.tmp`;
    await mkdir(folder);
    await utimes(folder, hourAgo, hourAgo);
    const store = createFileStore(file);
    await store.update(() => ({ state: { ...emptyBudget, bookedAt: 2 }, result: 1 }));
    const names = await readdir(dirname(file));
    expect(names).not.toContain(basename(old));
    for (const each of [fresh, folder, ...others]) expect(names).toContain(basename(each));
  });

  it("is refused where it is far larger than a day of bookings, and nothing is signed", async () => {
    const seller = await startDearSeller();
    const file = inFolder("budget.json");
    await writeFile(file, JSON.stringify(emptyBudget).padEnd(33 * 2 ** 20));
    const refused = await world.refusalOf(createFetch({ budget: { file } })(seller.url), seller);
    expect(refused).toMatchObject({
      code: "budget_file_unavailable",
      message: expect.stringContaining("32 MiB"),
    });
  });

  it("is refused when it cannot be read or written, and nothing is signed", async () => {
    const seller = await startDearSeller();
    await mkdir(inFolder("folder.json"));
    for (const file of [inFolder("folder.json"), inFolder("missing/budget.json")]) {
      await expect(createFetch({ budget: { file } })(seller.url)).rejects.toMatchObject({
        code: "budget_file_unavailable",
      });
    }
    expect(world.account().signatures()).toBe(0);
  });

  it("is not written by a no-op change", async () => {
    const file = inFolder("budget.json");
    await createFileStore(file).update((state) => ({ state, result: 0 }));
    await expect(stat(file)).rejects.toMatchObject({ code: "ENOENT" });
  });

  it("is not written by a holder whose lock file was removed, since another process may hold a new one", async () => {
    const file = inFolder("budget.json");
    const store = createFileStore(file);
    const state = { ...emptyBudget, bookedAt: 1 };
    const isLate = store.update(() => {
      rmSync(`${file}.lock`);
      return { state, result: 0 };
    });
    await expect(isLate).rejects.toMatchObject({ code: "budget_file_unavailable" });
    await expect(stat(file)).rejects.toMatchObject({ code: "ENOENT" });
    expect(await store.update(() => ({ state, result: 1 }))).toBe(1);
  });

  it("reads back what it wrote, to the last digit", async () => {
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

describe("a full disk", () => {
  it("stops payments, and leaves the budget file unchanged", async () => {
    const file = inFolder("budget.json");
    const inLimits = [
      "-c",
      'ulimit -f 0; exec "$@"',
      "sh",
      process.execPath,
      spendInProcess(),
      file,
      "1",
    ];
    const { stderr } = spawnSync("sh", inLimits, { encoding: "utf8" });
    expect(stderr).toContain("budget_file_unavailable");
    expect(stderr).toContain("EFBIG");
    expect(await readdir(dirname(file))).toEqual(["budget.json.lock"]);
  });
});

describe("two processes on one budget file", () => {
  it("never spend more than the limit of one", async () => {
    const file = inFolder("budget.json");
    const run = async () => {
      const { stdout } = await promisify(execFile)(process.execPath, [
        spendInProcess(),
        file,
        "40",
      ]);
      return Number(stdout);
    };
    const [first, second] = await Promise.all([run(), run()]);
    expect(first + second).toBe(50);
    expect(Math.min(first, second)).toBeGreaterThan(0);
  });
});

describe("processes that are killed at any moment", () => {
  it("never exceed the limit, lose no acknowledged booking, and never leave the budget locked", async () => {
    const file = inFolder("budget.json");
    const [limit, bookings] = ["$0.20", 200];
    const start = () => runScript([process.execPath, bookUntilFull(), file, limit]);
    const printed: string[] = [];
    for (let round = 0; round < 3; round += 1) {
      const running = Array.from({ length: 4 }, start);
      await Promise.all(running.map(({ begun }) => begun));
      for (const { child, ended, lines } of running) {
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 40));
        child.kill("SIGKILL");
        await ended;
        printed.push(...lines());
      }
    }
    const last = start();
    await last.ended;
    printed.push(...last.lines());
    expect(last.child.exitCode).toBe(0);
    const state = budgetStateSchema.parse(JSON.parse(await readFile(file, "utf8")));
    const booked = new Set<string>(state.open.map(({ id }) => id.nonce));
    expect(booked.size).toBe(bookings);
    expect(printed.filter((nonce) => !booked.has(nonce))).toEqual([]);
  });
});

describe("a budget file of another version", () => {
  const fixture = fileURLToPath(
    new URL("../testing/fixtures/budget-version-1.json", import.meta.url),
  );
  const points = "eip155:1/0x209693bc6afc0c5328ba36faf03c514ef312287c";

  it("is migrated from 0.1.0 with every booking, also by concurrent starts", async () => {
    const file = inFolder("budget.json");
    await copyFile(fixture, file);
    const stores = Array.from({ length: 8 }, () => createFileStore(file));
    await Promise.all(
      stores.map((store) => store.update((state) => ({ state: { ...state }, result: 0 }))),
    );
    await createFileStore(file).update((state) => {
      expect(bookedIn(state, "usd")).toBe(153n * 10n ** 15n);
      expect(bookedIn(state, "usd", "shop.example")).toBe(53n * 10n ** 15n);
      expect(bookedIn(state, points)).toBe(5n);
      expect(state.open.map(({ validBefore }) => validBefore)).toEqual([1700003900, 1700003900]);
      return { state, result: 0 };
    });
  });

  it("is kept from the last release with every booking, and its time", async () => {
    const file = inFolder("budget.json");
    await copyFile(new URL("../testing/fixtures/budget-d8de07e.json", import.meta.url), file);
    const before = await readFile(file, "utf8");
    await createFileStore(file).update((state) => {
      expect(bookedIn(state, "usd")).toBe(160n * 10n ** 15n);
      expect(bookedIn(state, "usd", "shop.example")).toBe(60n * 10n ** 15n);
      expect(bookedIn(state, points)).toBe(5n);
      expect(state.open).toHaveLength(3);
      expect(state.bookedAt).toBe(1_700_003_600_000);
      return { state: { ...state }, result: 0 };
    });
    expect(JSON.parse(await readFile(file, "utf8"))).toEqual(JSON.parse(before));
  });

  it("can be read by version 0.1.0 after the migration", async () => {
    const file = inFolder("budget.json");
    await copyFile(fixture, file);
    await createFileStore(file).update((state) => ({ state: { ...state }, result: 0 }));
    const { bookedAt, ...rest } = JSON.parse(await readFile(file, "utf8"));
    expect(bookedAt).toBe(0);
    expect(rest).toEqual(JSON.parse(await readFile(fixture, "utf8")));
  });

  it("is refused with its number when its version is newer", async () => {
    const file = inFolder("budget.json");
    await writeFile(file, '{"version":2,"spent":[],"open":[]}');
    const read = createFileStore(file).update((state) => ({ state, result: 0 }));
    await expect(read).rejects.toMatchObject({
      code: "budget_file_corrupt",
      message: expect.stringContaining("version 2, which a newer client wrote"),
    });
  });
});

describe("a budget file with two names", () => {
  it("is refused while it has a hard link, and works again without it", async () => {
    const seller = await startDearSeller();
    const [file, second] = [inFolder("budget.json"), inFolder("second.json")];
    const payAs = (name: string) =>
      createFetch({ budget: { perDay: "$0.20", file: name } })(seller.url);
    await payAs(file);
    await link(file, second);
    for (const name of [file, second]) {
      await expect(payAs(name)).rejects.toMatchObject({
        code: "budget_file_unavailable",
        message: expect.stringContaining("2 names (hard links)"),
      });
    }
    await rm(second);
    expect((await payAs(file)).status).toBe(200);
    await expect(payAs(file)).rejects.toMatchObject({ code: "over_budget" });
  });
});
