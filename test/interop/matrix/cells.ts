import { byDay } from "@coinslot/devnet/effort";
import { clients, type MatrixClient } from "./clients.ts";
import { facilitators, type MatrixFacilitator } from "./facilitators.ts";
import { type MatrixSeller, sellers } from "./sellers.ts";

/** A client, a middleware and a facilitator that meet. */
export interface Cell {
  client: MatrixClient;
  seller: MatrixSeller;
  facilitator: MatrixFacilitator;
  /** True if the three speak a version together, and so a purchase has to come about. */
  buys: boolean;
}

/**
 * A row for each pair of a middleware and a facilitator that can be set up. `x402-express` takes
 * only a URL. `@x402/express` ends its process where a facilitator does not serve its version.
 */
const rows: readonly (readonly Cell[])[] = sellers.flatMap((seller) =>
  facilitators
    .filter((facilitator) => seller.takesObject || !facilitator.isInProcess)
    .filter((facilitator) => facilitator.versions.some((each) => seller.versions.includes(each)))
    .map((facilitator) =>
      clients.map((client) => ({
        client,
        seller,
        facilitator,
        buys: ([1, 2] as const).some((version) =>
          [client, seller, facilitator].every(({ versions }) => versions.includes(version)),
        ),
      })),
    ),
);

/** One cell of each row, with another client each time; one that buys, where there is any. */
const oneCellPerRow: readonly Cell[] = rows.flatMap((row, index) => {
  const turned = row.map((_, at) => row[(index + at) % row.length]);
  return turned.find((cell) => cell?.buys) ?? turned[0] ?? [];
});

/** The cells of a run: one of each row by day, and every combination in a whole run. */
export const cells = byDay(oneCellPerRow, rows.flat());
