import { systemClock } from "@coinslot/chain";
import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { silentLogger } from "../../logger.ts";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { enginesByDay } from "../../testing/settling-devnet.ts";
import { claimBeforeClose } from "./claim-before-close.ts";

describe.each(enginesByDay("sqlite"))("the claim before the close, on %s", (engine) => {
  const shared = ledgerForEachTest(engine);

  it("ends where the database is lost after it was sent: all else is to be stopped", async () => {
    const ledger = await shared.join("first");
    const warnings: string[] = [];
    const logger = {
      ...silentLogger,
      warn: (_: object, message: string) => void warnings.push(message),
    };
    await claimBeforeClose(
      {
        context: { ledger, clock: systemClock, logger },
        settings: { claimAtCloseMs: 60_000 },
        place: { network: "eip155:9745" },
      },
      async () => {
        await shared.read(sql`drop table channel_claims`);
        return { sent: ["a row"], waiting: undefined };
      },
    );
    expect(warnings).toEqual(["claims could not be followed before the close"]);
  });
});
