import { systemClock } from "@coinslot/chain";
import { describe, expect, it, vi } from "vitest";
import { readChannel } from "../../ledger/channels/open-channel.ts";
import { price, runOf, salesForEachTest } from "../../testing/sales-scene.ts";

type Scene = ReturnType<typeof salesForEachTest>;

/** Purchases after which a channel is one process's own. */
const streak = 9;

/** Sales whose writes are counted. */
function openCounted(scene: Scene, options: Parameters<Scene["open"]>[1] = {}) {
  let writes = 0;
  const { write } = scene.first;
  const counted = {
    ...scene.first,
    write: ((...args: Parameters<typeof write>) => {
      writes += 1;
      return write(...args);
    }) as typeof write,
  };
  return { sales: scene.open(counted, options), writes: () => writes };
}

async function buyMany(scene: Scene, sales: ReturnType<Scene["open"]>, from: number, to: number) {
  for (let count = from; count <= to; count += 1) {
    expect(await scene.buy(sales, BigInt(count) * price)).toMatchObject({ state: "charged" });
  }
}

const runOfChannel = async (scene: Scene) => (await readChannel(scene.first, scene.buyer.key))?.run;

describe("a channel whose requests all come to one process, on postgres", () => {
  const scene = salesForEachTest("postgres");

  it("is reserved once, and then each request is one commit", async () => {
    const { sales, writes } = openCounted(scene);
    await buyMany(scene, sales, 1, streak);
    expect(await runOfChannel(scene)).toMatchObject({ owner: "first" });
    const before = writes();
    await buyMany(scene, sales, streak + 1, streak + 5);
    // Beside the timed batches of delivery marks.
    expect(writes() - before).toBeLessThan(8);
  });

  it("is another process's soon after, and has no 503 in between", async () => {
    const sales = scene.open(scene.first);
    const other = scene.open(await scene.shared.join("second"));
    await buyMany(scene, sales, 1, streak);
    expect(await scene.buy(other, BigInt(streak + 1) * price)).toMatchObject({ state: "charged" });
    expect(await scene.buy(sales, BigInt(streak + 2) * price)).toMatchObject({ state: "charged" });
  });

  it("is free at once when its process ends", async () => {
    const sales = scene.open(scene.first, {
      clock: { ...systemClock, setTimer: () => () => undefined },
    });
    await buyMany(scene, sales, 1, streak);
    expect(await runOfChannel(scene)).toBeDefined();
    await sales.close();
    expect(await runOfChannel(scene)).toBeUndefined();
  });

  it("is taken from a process that died, which charges nothing once it wakes up", async () => {
    const sales = scene.open(scene.first, {
      clock: { ...systemClock, setTimer: () => () => undefined },
    });
    const other = scene.open(await scene.shared.join("second"));
    await buyMany(scene, sales, 1, streak);
    const ceiling = BigInt(streak + 1) * price;
    const frozen = runOf(await sales.admit(await scene.buyer.present(ceiling)));
    await scene.shared.silence("first");
    expect(await scene.buy(other, ceiling)).toMatchObject({ state: "charged" });
    expect(await frozen.charge({ amount: price })).toMatchObject({ state: "corrected" });
    expect(await readChannel(scene.first, scene.buyer.key)).toMatchObject({ charged: ceiling });
  });

  it("runs one handler for a voucher of an unsafe method, here and elsewhere", async () => {
    const sales = scene.open(scene.first);
    const other = scene.open(await scene.shared.join("second"));
    await buyMany(scene, sales, 1, streak);
    const request = await scene.buyer.present(BigInt(streak + 1) * price, { isSafe: false });
    const run = runOf(await sales.admit(request));
    expect(await other.admit(request)).toMatchObject({ state: "busy" });
    expect(await run.charge({ amount: price })).toMatchObject({ state: "charged" });
  });

  it("is free after a request that was dropped", async () => {
    const sales = scene.open(scene.first);
    await buyMany(scene, sales, 1, streak);
    const run = runOf(await sales.admit(await scene.buyer.present(BigInt(streak + 1) * price)));
    await run.drop({ isFree: false });
    await vi.waitFor(async () => expect(await runOfChannel(scene)).toBeUndefined());
  });
});
