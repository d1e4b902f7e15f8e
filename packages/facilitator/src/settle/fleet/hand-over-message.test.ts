import { expect, it } from "vitest";
import { createSortableId } from "../../ledger/sortable-id.ts";
import { encodeHandOver, maxHandedOver, parseHandOver } from "./hand-over-message.ts";

const network = "eip155:11155111";
const simulation = { digest: "Zz09_-".padEnd(22, "a"), gasUsed: 51_234n, at: 1_000 };

it("a message holds the payments, and the age of some of their simulations", () => {
  const payments = [{ id: "1" }, { id: "2", simulation }, { id: "3" }];
  expect(parseHandOver(encodeHandOver(network, payments, 1_039.5), 7_000)).toEqual({
    network,
    ids: ["1", "2", "3"],
    simulations: [{ ...simulation, at: 6_960 }],
  });
});

it("a message without simulations is that of older releases", () => {
  const payload = `${network} 1,2`;
  expect(encodeHandOver(network, [{ id: "1" }, { id: "2" }], 0)).toBe(payload);
  expect(parseHandOver(payload, 0)).toEqual({ network, ids: ["1", "2"], simulations: [] });
});

it.each(["", "x", "..", `${simulation.digest}.-1.0`, `${simulation.digest}.1`])(
  "a message with the simulation %j holds its payments alone",
  (malformed) => {
    expect(parseHandOver(`${network} 1 ${malformed}`, 0)).toEqual({
      network,
      ids: ["1"],
      simulations: [],
    });
  },
);

it("a message of the most payments fits into a notification of PostgreSQL", () => {
  const payments = Array.from({ length: maxHandedOver }, () => ({
    id: createSortableId(Date.now()),
    simulation: { ...simulation, gasUsed: 999_999_999n },
  }));
  expect(Buffer.byteLength(encodeHandOver(network, payments, 100_999))).toBeLessThan(8_000);
});
