import {
  decodeChargeRequest,
  encodeChargeRequest,
  headerName,
  toLowerHex,
} from "@coinslot/protocol";
import { isDelivered } from "../ask-seller.ts";
import { failed, judgeRefusals, type WireCheck } from "../check.ts";
import type { Probe } from "../probe.ts";
import { toChallengedWay, type Way, type WireName } from "../way.ts";

type Headers = readonly (readonly [name: string, value: string])[];
type Forgery = [kind: string, make: (probe: Probe, way: Way) => Promise<Headers>];

const garbage: Readonly<Record<WireName, Headers>> = {
  "x402 v1": [[headerName.payment, "bnVsbA=="]],
  "x402 v2": [[headerName.paymentSignature, "bnVsbA=="]],
  MPP: [[headerName.authorization, "Payment bnVsbA"]],
};

/** None of them can cost anything: see `open-payer.ts`. */
const forgeries: readonly Forgery[] = [
  ["garbage", async (_probe, { wire }) => garbage[wire]],
  ["a foreign signature", async ({ payer }, way) => (await payer.forge(way, "payer")).headers],
  ["an empty account", async ({ payer }, way) => (await payer.forge(way, "its own")).headers],
  ["another recipient", async ({ payer }, way) => (await payer.payItself(way)).headers],
];

/** A challenge of the seller's with its recipient changed: the id does not prove it any more. */
const changedChallenge: Forgery = [
  "a changed challenge",
  async ({ payer }, way) => {
    const own = await payer.payItself(way);
    const { from } = own.authorization;
    const challenge = way.bound?.challenge;
    if (challenge === undefined) return own.headers;
    const asked = decodeChargeRequest(challenge.request);
    const request = encodeChargeRequest({ ...asked, recipient: toLowerHex(from) });
    const requirements = { ...way.requirements, payTo: from };
    const expires = way.bound?.validBefore ?? 0;
    const changed = toChallengedWay({ ...challenge, request }, { requirements, expires });
    return (await payer.payItself(changed)).headers;
  },
];

/** Whether payments that pay nothing are refused. */
export const forged: WireCheck = {
  name: "forged",
  scope: "wire",
  payments: 0,
  needsPayer: true,
  async run(probe, wire) {
    const statuses: number[] = [];
    const served: string[] = [];
    const all = wire === "MPP" ? [...forgeries, changedChallenge] : forgeries;
    for (const [kind, make] of all) {
      const headers = await make(probe, await probe.draw(wire));
      const answer = await probe.ask({ headers });
      statuses.push(answer.status);
      if (isDelivered(answer)) served.push(kind);
    }
    if (served.length > 0) return failed(`served for ${served.join(", ")}`);
    const found = `refused: ${all.map(([kind], index) => `${kind} ${statuses[index]}`).join(", ")}`;
    return judgeRefusals(found, statuses);
  },
};
