import { execFileSync } from "node:child_process";
import { link, readFile, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { superJournalOf } from "@coinslot/devnet";
import { useProgram } from "@coinslot/devnet/use-program";
import { DatabaseSync } from "@photostructure/sqlite";
import { describe, expect, it, onTestFinished } from "vitest";
import { channelRecord } from "../testing/channel-records.ts";
import { runScript } from "../testing/run-script.ts";
import { useTemporaryFolder } from "../testing/temporary-folder.ts";
import { exposureOf, lockedIn } from "./channel-record.ts";
import { type ChannelStore, openChannelStore } from "./channel-store.ts";

const inFolder = useTemporaryFolder();
const raiseCeilings = useProgram(new URL("../testing/raise-ceilings.ts", import.meta.url));

async function openStore(file = inFolder("channels.db")): Promise<ChannelStore> {
  const store = await openChannelStore(file);
  onTestFinished(() => store.close());
  return store;
}

const raise = (store: ChannelStore, id: string, ceiling: bigint) =>
  store.update(id, (record) => ({ ...record, ceiling }));

describe("the store of channels", () => {
  it("keeps every member of a channel over a restart, also sums of 128 bits", async () => {
    const record = channelRecord({
      ceiling: 2n ** 128n - 1n,
      charged: 7n,
      deposit: { amount: 5n, salt: `0x${"0d".repeat(32)}`, validBefore: 99, isReported: true },
      isWithdrawing: true,
      usedAt: 1_790_000_000_000,
    });
    const first = await openStore();
    first.create(record);
    first.notePurchase(record.origin);
    const second = await openStore();
    expect(second.find(record.id)).toEqual(record);
    expect(second.find(record.id.toUpperCase())).toEqual(record);
    expect(second.list()).toEqual([record]);
    expect(second.purchasesAt(record.origin)).toBe(1);
    expect(second.purchasesAt("https://other.example")).toBe(0);
    expect((await stat(inFolder("channels.db"))).mode & 0o777).toBe(0o600);
  });

  it("creates a channel once: a later creation finds the ceilings of the first", async () => {
    const store = await openStore();
    const record = channelRecord();
    store.create(record);
    raise(store, record.id, 500n);
    expect(store.create(record).ceiling).toBe(500n);
  });

  it("forgets a channel without money alone", async () => {
    const store = await openStore();
    const { id } = store.create(
      channelRecord({
        deposit: { amount: 5n, salt: `0x${"0d".repeat(32)}`, validBefore: 9, isReported: false },
      }),
    );
    store.forgetIfUnused(id);
    store.update(id, (record) => ({ ...record, deposit: undefined, balance: 1n }));
    store.forgetIfUnused(id);
    store.update(id, (record) => ({ ...record, balance: 0n, isWithdrawing: true }));
    store.forgetIfUnused(id);
    expect(store.list()).toHaveLength(1);
    store.update(id, (record) => ({ ...record, isWithdrawing: false }));
    store.forgetIfUnused(id);
    expect(store.list()).toEqual([]);
    store.create(channelRecord({ ceiling: 1n }));
    store.forgetIfUnused(id);
    expect(store.list()).toHaveLength(1);
  });

  it("lowers no ceiling and no spent sum, and stores nothing of such a change", async () => {
    const store = await openStore();
    const { id } = store.create(channelRecord({ ceiling: 500n, spent: 300n }));
    expect(() => raise(store, id, 499n)).toThrow();
    expect(() => store.update(id, (each) => ({ ...each, charged: 1n, spent: 299n }))).toThrow();
    expect(store.find(id)).toMatchObject({ ceiling: 500n, charged: 0n, spent: 300n });
  });

  it("loses no change of several processes at once", async () => {
    const { id } = (await openStore()).create(channelRecord());
    const file = inFolder("channels.db");
    const workers = [1, 2, 3, 4].map(() =>
      runScript([process.execPath, raiseCeilings(), file, id, "25"]),
    );
    await Promise.all(workers.map(({ ended }) => ended));
    const seen = workers.flatMap((worker) => worker.lines().map(Number));
    expect(new Set(seen).size).toBe(100);
    expect((await openStore()).find(id)?.ceiling).toBe(100n);
  });

  it("has every ceiling that a killed process has got to know", async () => {
    const { id } = (await openStore()).create(channelRecord());
    const worker = runScript([
      process.execPath,
      raiseCeilings(),
      inFolder("channels.db"),
      id,
      "1000000",
    ]);
    await worker.begun;
    worker.child.kill("SIGKILL");
    await worker.ended;
    const printed = BigInt(worker.lines().at(-1) ?? "0");
    expect(printed).toBeGreaterThan(0n);
    expect((await openStore()).find(id)?.ceiling).toBeGreaterThanOrEqual(printed);
  });

  it("writes no more once its file was removed or replaced: the ceilings would be lost", async () => {
    const store = await openStore();
    const { id } = store.create(channelRecord());
    await rename(inFolder("channels.db"), inFolder("aside.db"));
    const refused = expect.objectContaining({ code: "channel_file_unavailable" });
    expect(() => raise(store, id, 1n)).toThrow(refused);
    await writeFile(inFolder("channels.db"), "");
    expect(() => raise(store, id, 1n)).toThrow(refused);
  });

  it("is one store under a symbolic link, and refuses a hard link", async () => {
    await symlink(inFolder("channels.db"), inFolder("link.db"));
    const store = await openStore(inFolder("link.db"));
    store.create(channelRecord());
    expect((await openStore()).list()).toHaveLength(1);
    await link(inFolder("channels.db"), inFolder("second.db"));
    await expect(openStore()).rejects.toMatchObject({ code: "channel_file_unavailable" });
    await rm(inFolder("second.db"));
    expect((await openStore()).list()).toHaveLength(1);
  });

  it("leaves a file alone that is not its own, or of a newer version", async () => {
    await writeFile(inFolder("text.db"), "no database, but long enough to be read as one");
    const other = new DatabaseSync(inFolder("other.db"));
    other.exec("create table notes (text)");
    other.close();
    await openStore(inFolder("newer.db"));
    const newer = new DatabaseSync(inFolder("newer.db"));
    newer.exec("pragma user_version = 2");
    newer.close();
    for (const name of ["text.db", "other.db", "newer.db"]) {
      await expect(openChannelStore(inFolder(name))).rejects.toMatchObject({
        code: "channel_file_corrupt",
      });
    }
    expect(await readFile(inFolder("text.db"), "utf8")).toContain("no database");
    await expect(openChannelStore(inFolder("none/channels.db"))).rejects.toMatchObject({
      code: "channel_file_unavailable",
    });
  });

  it("opens no file whose journal names another file, which SQLite would delete", async () => {
    const file = inFolder("channels.db");
    const source = new DatabaseSync(inFolder("source.db"));
    source.exec(`create table notes (text); vacuum into '${file}'`);
    source.close();
    await writeFile(inFolder("other"), "kept");
    await writeFile(`${file}-journal`, superJournalOf(inFolder("other")));
    await expect(openChannelStore(file)).rejects.toMatchObject({
      code: "channel_file_unavailable",
      message: expect.stringContaining("channels.db-journal"),
    });
    expect(await readFile(inFolder("other"), "utf8")).toBe("kept");
  });

  it.each(["-journal", "-wal", "-shm"])("writes into no other file by its %s", async (suffix) => {
    const file = inFolder("channels.db");
    await writeFile(file, "");
    await writeFile(inFolder("other"), "kept");
    await link(inFolder("other"), file + suffix);
    await expect(openChannelStore(file)).rejects.toMatchObject({
      code: "channel_file_unavailable",
      message: expect.stringMatching(/hard link\): put a copy in its place$/),
    });
    expect(await readFile(inFolder("other"), "utf8")).toBe("kept");
  });

  it.each(["-journal", "-wal", "-shm"])("waits for no pipe in place of its %s", async (suffix) => {
    const file = inFolder("channels.db");
    await writeFile(file, "");
    execFileSync("mkfifo", [`${file}${suffix}`]);
    await expect(openChannelStore(file)).rejects.toMatchObject({
      code: "channel_file_unavailable",
      message: expect.stringContaining("is not a regular file"),
    });
  });
});

describe("sums of a channel", () => {
  it("count as locked what is not charged, with a deposit that may still be executed", () => {
    const deposit = {
      amount: 50n,
      salt: `0x${"0d".repeat(32)}`,
      validBefore: 9,
      isReported: false,
    };
    const record = channelRecord({ balance: 100n, charged: 30n });
    expect(lockedIn(record)).toBe(70n);
    expect(lockedIn({ ...record, deposit: { ...deposit, salt: `0x${"0d".repeat(32)}` } })).toBe(
      120n,
    );
    expect(lockedIn({ ...record, charged: 200n })).toBe(0n);
  });

  it("count as exposed what the seller may claim beyond what is booked as spent", () => {
    const record = channelRecord({ balance: 100n, ceiling: 60n, charged: 40n, spent: 45n });
    expect(exposureOf(record)).toBe(15n);
    expect(exposureOf({ ...record, balance: 50n })).toBe(5n);
    expect(exposureOf({ ...record, spent: 60n })).toBe(0n);
  });
});
