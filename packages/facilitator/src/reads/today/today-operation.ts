import * as z from "zod";
import { inSnapshot } from "../../ledger/ledger-reads.ts";
import { readDatabaseNow } from "../../ledger/queries/common-time.ts";
import { dayMs } from "../../ledger/queries/created-range.ts";
import { defineOperation } from "../../operators/operation.ts";
import { readChains } from "../chains-operation.ts";
import { readRelayers } from "../relayers-operation.ts";
import { byUrgency, findInLedger } from "./find-attention.ts";
import { findInChannels } from "./find-in-channels.ts";
import { findInProcess } from "./find-in-process.ts";
import { readToday } from "./read-figures.ts";
import { readLastWeek } from "./read-last-week.ts";
import { type Today, todayResult } from "./today-result.ts";

const weekMs = 7 * dayMs;

/** Income, payments and stages since midnight, against last week; and what needs a person. */
export const todayOperation = defineOperation({
  name: "today",
  access: "read",
  asksSeller: true,
  argument: z.strictObject({}),
  result: todayResult,
  run: (reads, _, seller) =>
    inSnapshot<Today>(reads, async (snapshot) => {
      const now = await readDatabaseNow(snapshot);
      const from = Math.floor(now / dayMs) * dayMs;
      const before = { from: from - weekMs, to: now - weekMs };
      const { relayers } = await readRelayers(snapshot, seller);
      const { chains } = await readChains(snapshot, seller);
      const found = [
        ...(await findInProcess(seller, { relayers, chains })),
        ...(await findInLedger(snapshot, now)),
        ...(await findInChannels(snapshot, now)),
      ];
      return {
        at: new Date(now).toISOString(),
        source: seller === undefined ? "ledger" : "seller",
        today: await readToday(snapshot, { from, to: now }),
        lastWeek: await readLastWeek(snapshot, before, seller),
        attention: byUrgency(found),
      };
    }),
});
