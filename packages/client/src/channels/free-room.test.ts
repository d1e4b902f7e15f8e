import { readFile } from "node:fs/promises";
import { plasma, plasmaUsdt0 } from "@coinslot/protocol";
import { describe, expect, it, onTestFinished } from "vitest";
import { createFileStore } from "../budget/budget-file.ts";
import { budgetStateSchema } from "../budget/budget-state.ts";
import type { SignedPayment } from "../index.ts";
import { OfferRefusedError } from "../offer/offer-refused-error.ts";
import { listen } from "../testing/listen.ts";
import { startLyingNode } from "../testing/lying-node.ts";
import { payTo, startSeller } from "../testing/seller.ts";
import { useChannels } from "../testing/use-channels.ts";

const { world, inFolder, openStore, sellerOf, createFetch, records } = useChannels();

async function openBookings() {
  const text = await readFile(inFolder("budget.json"), "utf8");
  return budgetStateSchema.parse(JSON.parse(text)).open;
}

/** A seller that never executes a deposit. */
const refusingSeller = () =>
  sellerOf({
    onPaid: (_paid, response) => {
      response.writeHead(402).end("{}");
      return true;
    },
  });

/** A buyer by two hosts whose deposit at a gone seller has expired: it fills this budget. */
async function buyerWithDeadDeposit(perDay = "$0.001") {
  const { client, mine, snapshot, revert, rpcUrl } = world.devnet();
  const before = await snapshot();
  onTestFinished(() => revert(before));
  let now = Date.now();
  const second = rpcUrl.replace("127.0.0.1", "localhost");
  const create = (node = second, beforeSend?: () => void) =>
    createFetch(
      {},
      {
        budget: { perDay, perHost: perDay, file: inFolder("budget.json") },
        rpcUrls: { [plasma]: [rpcUrl, node] },
        now: () => now,
        beforeSend,
      },
    );
  const gone = await refusingSeller();
  expect((await create()(gone.url)).status).toBe(402);
  await gone.close();
  now += 1_300_000;
  await client.setNextBlockTimestamp({ timestamp: BigInt(now) / 1000n });
  await mine();
  const [{ id = "0x" } = {}] = await records();
  return { create, id, now: () => now };
}

/** Keeps a payment that is then not sent. */
function keeper() {
  let payment: SignedPayment | undefined;
  return {
    keep(signed: SignedPayment) {
      payment = signed;
      throw new Error("kept");
    },
    kept() {
      if (payment === undefined) throw new Error("Nothing was kept");
      return payment;
    },
  };
}

describe("the room of an expired deposit", () => {
  it("is there for a seller that offers no channel", async () => {
    const { create } = await buyerWithDeadDeposit();
    const seller = world.keep(await startSeller());
    expect((await create()(seller.url)).status).toBe(200);
    expect((await records())[0]?.deposit).toBeUndefined();
  });

  it("is there for a payment that is resumed", async () => {
    const { create, now } = await buyerWithDeadDeposit();
    const { kept, keep } = keeper();
    const seller = world.keep(await startSeller());
    const elsewhere = world.createFetch({ now, beforeSend: keep });
    await expect(elsewhere(seller.url)).rejects.toThrow("kept");
    expect((await create().resume(kept(), seller.url)).status).toBe(200);
  });

  it("is there for a voucher that is resumed", async () => {
    const { create, now } = await buyerWithDeadDeposit();
    const { kept, keep } = keeper();
    const seller = await sellerOf();
    const elsewhere = createFetch({ file: inFolder("other.db") }, { now, beforeSend: keep });
    await expect(elsewhere(seller.url)).rejects.toThrow("kept");
    const [signed] = (await openStore("other.db")).list();
    if (signed === undefined) throw new Error("No channel");
    (await openStore()).create({ ...signed, ceiling: 0n });
    expect((await create().resume(kept(), seller.url)).status).toBe(200);
  });

  it("is not looked for while there is enough", async () => {
    const { create, id } = await buyerWithDeadDeposit("$0.01");
    const asked: string[] = [];
    const node = world.keep(
      await startLyingNode(world.devnet().rpcUrl, ({ params }) => {
        asked.push(JSON.stringify(params));
        return undefined;
      }),
    );
    const url = node.url.replace("127.0.0.1", "localhost");
    expect((await create(url)((await sellerOf()).url)).status).toBe(200);
    expect(asked.filter((text) => text?.includes(id.slice(2)))).toEqual([]);
    const left = (await records()).find((record) => record.id === id);
    expect(left?.deposit).toBeDefined();
  });

  it("is not looked for because of an error of the caller's own", async () => {
    const { create } = await buyerWithDeadDeposit("$0.01");
    let handedOver = 0;
    const beforeSend = () => {
      handedOver += 1;
      const asset = plasmaUsdt0.address;
      const entry = { network: plasma, asset, payTo, amount: 1n } as const;
      throw new OfferRefusedError([{ code: "over_budget", message: "another", ...entry }]);
    };
    const seller = world.keep(await startSeller());
    await expect(create(undefined, beforeSend)(seller.url)).rejects.toThrow("another");
    expect(handedOver).toBe(1);
    expect((await records())[0]?.deposit).toBeDefined();
  });

  it("is given up for the caller that aborts, though an endpoint hangs", async () => {
    const { create } = await buyerWithDeadDeposit();
    const abort = new AbortController();
    const reason = new Error("Too slow");
    let asked = 0;
    let givenUp = 0;
    const node = world.keep(
      await listen((_request, response) => {
        asked += 1;
        response.once("close", () => {
          givenUp += 1;
        });
        abort.abort(reason);
      }),
    );
    const seller = await sellerOf();
    const pay = create(node.url.replace("127.0.0.1", "localhost"));
    await expect(pay(seller.url, { signal: abort.signal })).rejects.toBe(reason);
    expect(asked).toBeGreaterThan(0);
    expect(givenUp).toBe(0);
  });
});

describe("a booking above what is stored, as a kill between the two files leaves it", () => {
  it("is lowered when its room is needed", async () => {
    const file = inFolder("budget.json");
    const pay = createFetch({}, { budget: { perDay: "$0.003", perHost: "$0.003", file } });
    await pay((await refusingSeller()).url);
    await createFileStore(file).update((state) => {
      const open = state.open.map((each) => ({ ...each, amount: 3n * each.amount }));
      return { state: { ...state, open }, result: undefined };
    });
    const seller = world.keep(await startSeller());
    expect((await pay(seller.url)).status).toBe(200);
    expect(await openBookings()).toMatchObject([{ amount: 10n ** 15n }]);
  });
});

describe("a booking of a channel whose file is restored from an older copy", () => {
  it("is neither replaced by a lower one, nor lowered for its room", async () => {
    let amount = "1000";
    const seller = await sellerOf({
      terms: () => ({ amount }),
      onPaid: async (paid, response) => {
        await seller.deposit(paid);
        seller.sell(paid, response, 0n);
        return true;
      },
    });
    const budget = { perDay: "$0.0095", file: inFolder("budget.json") };
    const pay = createFetch({}, { budget });
    await pay(seller.url);
    const [copy] = await records();
    if (copy === undefined) throw new Error("No channel");
    for (amount of ["5000", "9000"]) await pay(seller.url);

    (await openStore("older.db")).create(copy);
    const restored = createFetch({ file: inFolder("older.db") }, { budget });
    amount = "1000";
    expect((await restored(seller.url)).status).toBe(200);
    expect(await openBookings()).toMatchObject([{ amount: 9n * 10n ** 15n }]);
    const other = world.keep(await startSeller());
    await expect(restored(other.url)).rejects.toMatchObject({ code: "over_budget" });
  });
});
