import { systemClock } from "@coinslot/chain";
import { sql } from "kysely";
import { numberToHex } from "viem";
import { describe, expect, it } from "vitest";
import { silentLogger } from "../../logger.ts";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { engines } from "../../testing/settling-devnet.ts";
import { createDeliveryMarks } from "./delivery-marks.ts";

describe.each(engines)("delivery marks, on %s", (engine) => {
  const shared = ledgerForEachTest(engine);

  it("are lost at a close without the database, which goes on", async () => {
    const ledger = await shared.join("first");
    const warnings: string[] = [];
    const logger = {
      ...silentLogger,
      warn: (_: object, message: string) => void warnings.push(message),
    };
    const marks = createDeliveryMarks({ ledger, clock: systemClock, logger });
    const contract = numberToHex(1, { size: 20 });
    const channelId = numberToHex(1, { size: 32 });
    marks.add({ network: "eip155:9745", contract, channelId }, "charge");
    await shared.read(sql`drop table channels`);
    await marks.close();
    expect(warnings).toEqual(["delivery marks of channels are lost at the close"]);
  });
});
