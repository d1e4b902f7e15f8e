import { describe, expect, it } from "vitest";
import type { Header, RequestHead } from "../proxy/observer.ts";
import { type CycleBoard, createCycleBoard } from "./cycle-board.ts";

const requirements = {
  scheme: "exact",
  network: "eip155:9745",
  amount: "1000",
  asset: "0xB8CE59FC3717ada4C02eaDF9682A9e934F625ebb",
  payTo: "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",
  maxTimeoutSeconds: 300,
};
const required = encode({
  x402Version: 2,
  resource: { url: "http://a/" },
  accepts: [requirements],
});

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64");
}

/** Passes one exchange through a board. */
function pass(
  board: CycleBoard,
  head: Partial<RequestHead>,
  status: number,
  headers: readonly Header[] = [["PAYMENT-REQUIRED", required]],
): void {
  const start = { method: "GET", target: "/", headers: [], connection: "1", at: 1 };
  const exchange = board.open({ ...start, ...head });
  exchange.answer({ status, statusText: "", headers, at: 2 });
  exchange.end("answered", 3);
}

describe("a board of cycles", () => {
  it("keeps the latest 1,000 of 10,000 cycles, and their bytes within bounds", () => {
    const board = createCycleBoard();
    const big: Header = ["X-Big", "x".repeat(60_000)];
    for (let index = 1; index <= 10_000; index += 1) {
      pass(board, { target: `/${index}` }, 402, index % 20 === 0 ? [big] : undefined);
    }
    expect(board.cycles()).toHaveLength(1_000);
    expect(board.cycles().at(-1)?.target).toBe("/10000");
    expect(board.counts()).toEqual({ passed: 0, dropped: 9_000 });
    expect(JSON.stringify(board.cycles()).length).toBeLessThan(33 * 2 ** 20);
  });

  it("keeps 32 exchanges of a cycle, however often a payment is repeated", () => {
    const board = createCycleBoard();
    for (let index = 0; index < 100; index += 1) {
      pass(
        board,
        {
          headers: [
            ["X-PAYMENT", "e30="],
            ["Idempotency-Key", "same"],
          ],
        },
        400,
        [],
      );
    }
    expect(board.cycles()).toHaveLength(1);
    expect(board.cycles()[0]).toMatchObject({ droppedLegs: 68 });
  });

  it.each([
    ["PAYMENT-SIGNATURE", "%%%"],
    ["PAYMENT-SIGNATURE", encode(null)],
    ["PAYMENT-SIGNATURE", "A".repeat(60_000)],
    ["X-PAYMENT", encode([[[[]]]])],
    ["X-PAYMENT", `${encode({ __proto__: 1 })}====`],
    ["Authorization", "Payment"],
    ["Authorization", `Payment ${encode({ challenge: { id: 1 } })}`],
    ["Payment-Authorization", "Payment \u00ff\u00fe"],
  ])("takes a malformed %s as a payment in no form", (name, value) => {
    const board = createCycleBoard();
    pass(board, { headers: [[name, value]] }, 400, []);
    const [cycle] = board.cycles();
    expect(cycle?.legs[0]?.payment?.failed?.check).toBe("form");
  });

  it.each<Header>([
    ["PAYMENT-REQUIRED", "not base64 at all"],
    ["PAYMENT-REQUIRED", encode({ x402Version: 2, accepts: [{ ...requirements, amount: -1 }] })],
    ["WWW-Authenticate", 'Payment id="a", id="b", Payment, , ="'],
    ["WWW-Authenticate", `Payment ${'id="x", '.repeat(5_000)}`],
  ])("shows the fault of an offer that no client can read: %s", (name, value) => {
    const board = createCycleBoard();
    pass(board, {}, 402, [[name, value]]);
    const [leg] = board.cycles()[0]?.legs ?? [];
    expect(leg?.ways).toEqual([]);
    expect(leg?.decoded[0]?.fault).toEqual(expect.any(String));
  });

  it("joins a payment to the open offer of its own connection first", () => {
    const board = createCycleBoard();
    pass(board, { connection: "1" }, 402);
    pass(board, { connection: "2" }, 402);
    pass(board, { connection: "1", headers: [["X-PAYMENT", "e30="]] }, 400, []);
    expect(board.cycles().map(({ legs }) => legs.length)).toEqual([2, 1]);
  });
});
