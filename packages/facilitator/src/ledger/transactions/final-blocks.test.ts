import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { network } from "../../testing/ledger-payments.ts";
import { engines } from "../../testing/settling-devnet.ts";
import {
  findFinalBlocks,
  findLeftBlocks,
  forgetLeft,
  keepFinalBlocks,
  markLeft,
  unmarkLeft,
} from "./final-blocks.ts";

/** A statement of both engines takes 65,535 parameters at most. */
const count = 33_000;
const blocks = Array.from({ length: count }, (_, number) => ({
  number,
  hash: `0x${number.toString(16).padStart(64, "0")}` as const,
}));

describe.each(engines)("final blocks, on %s", (engine) => {
  const { join } = ledgerForEachTest(engine);

  it("are marked, unmarked and forgotten, however many have left", async () => {
    const ledger = await join("one");
    const { dialect } = ledger;
    await ledger.write((transaction) =>
      keepFinalBlocks({ transaction, dialect }, { network, blocks }),
    );
    await markLeft(ledger, { network, blocks });
    expect(await findLeftBlocks(ledger, network)).toHaveLength(count);
    await unmarkLeft(ledger, { network, blocks });
    expect(await findLeftBlocks(ledger, network)).toEqual([]);
    await markLeft(ledger, { network, blocks });
    await forgetLeft(ledger, { network, blocks });
    const below = count;
    expect(await findFinalBlocks(ledger, { network, below, limit: 1 })).toEqual([]);
  });
});
