import type { Check } from "../check.ts";
import { agreement } from "./agreement.ts";
import { caching } from "./caching.ts";
import { charges } from "./charges.ts";
import { concurrent } from "./concurrent.ts";
import { failingHandler } from "./failing-handler.ts";
import { forged } from "./forged.ts";
import { head } from "./head.ts";
import { offer } from "./offer.ts";
import { otherRoute } from "./other-route.ts";
import { protocols } from "./protocols.ts";
import { purchase } from "./purchase.ts";
import { receipt } from "./receipt.ts";
import { repeat } from "./repeat.ts";
import { spellings } from "./spellings.ts";
import { underpaid } from "./underpaid.ts";

/** All checks, in their order: first what costs nothing, and the account of all payments last. */
export const allChecks: readonly Check[] = [
  offer,
  agreement,
  head,
  spellings,
  forged,
  purchase,
  receipt,
  caching,
  repeat,
  concurrent,
  protocols,
  underpaid,
  otherRoute,
  failingHandler,
  charges,
];
