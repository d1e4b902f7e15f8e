import { toLowerHex } from "@coinslot/protocol";
import * as z from "zod";
import type { ChannelFaultPoint } from "../channels/sales/sales-context.ts";
import { openChannelSeller } from "./channel-seller.ts";

const hex = z.templateLiteral(["0x", z.string()]);
const bigint = z.string().transform(BigInt);

const taskSchema = z.object({
  ledger: z.string(),
  contract: hex,
  receiverAuthorizer: hex,
  /** The process stops for ever at this point. */
  dieAt: z.string(),
  request: z.object({
    network: z.templateLiteral(["eip155:", z.number()]),
    channelConfig: z.object({
      payer: hex,
      payerAuthorizer: hex,
      receiver: hex,
      receiverAuthorizer: hex,
      token: hex,
      withdrawDelay: z.number(),
      salt: hex,
    }),
    voucher: z.object({ channelId: hex, maxClaimableAmount: bigint, signature: hex }),
    isSafe: z.boolean(),
  }),
});

/** Task of `sell-in-child.ts`, as JSON. */
export type SellInChildTask = z.input<typeof taskSchema>;

/** A program that serves one voucher of 10 units, and waits at a point to be killed. */
async function main(argument: string): Promise<void> {
  const { ledger, contract, receiverAuthorizer, dieAt, request } = taskSchema.parse(
    JSON.parse(argument),
  );
  const { network, isSafe, channelConfig, voucher } = request;
  async function faultPoint(point: ChannelFaultPoint | "channel_delivered"): Promise<void> {
    if (point !== dieAt) return;
    process.stdout.write("reached");
    await new Promise(() => setInterval(() => undefined, 60_000));
  }
  const { sales } = await openChannelSeller({
    url: ledger,
    network,
    contract: toLowerHex(contract),
    receiverAuthorizer: toLowerHex(receiverAuthorizer),
    look: async () => ({
      balance: 1_000n,
      totalClaimed: 0n,
      withdrawRequestedAt: 0,
      refundNonce: 0n,
      secure: 1_000n,
    }),
    processId: `child ${process.pid}`,
    options: { faultPoint },
  });
  const admission = await sales.admit({
    network,
    route: "GET /weather",
    presented: { channelConfig, voucher },
    price: 10n,
    fingerprint: "GET /weather",
    isSafe,
    isGone: () => false,
  });
  if (admission.state !== "admitted") throw new Error(admission.state);
  const charge = await admission.run.charge({ amount: 10n });
  if (charge.state !== "charged") throw new Error(charge.state);
  await charge.lower(4n);
  charge.deliver();
  await sales.close();
  await faultPoint("channel_delivered");
}

await main(process.argv[2] ?? "");
