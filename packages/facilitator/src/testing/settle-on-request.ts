import { createInterface } from "node:readline";
import { toLowerHex } from "@coinslot/protocol";
import * as z from "zod";
import { createFacilitator } from "../create-facilitator.ts";

/** The program's options: one JSON argument. */
const taskSchema = z.object({
  network: z.templateLiteral(["eip155:", z.number()]),
  rpcUrl: z.string(),
  seedPhrase: z.string(),
  addressCount: z.number(),
  ledger: z.string(),
  heartbeatLeaseSeconds: z.number(),
});

const hex = z.templateLiteral(["0x", z.string()]);
const requestSchema = z.object({
  number: z.number(),
  authorization: z.object({
    from: hex,
    to: hex,
    nonce: hex,
    value: z.coerce.bigint(),
    validBefore: z.coerce.bigint(),
  }),
  paymentPayload: z.looseObject({
    x402Version: z.number(),
    payload: z.record(z.string(), z.unknown()),
  }),
  paymentRequirements: z.looseObject({
    scheme: z.string(),
    network: z.templateLiteral(["eip155:", z.number()]),
    asset: hex,
    payTo: z.string(),
    maxTimeoutSeconds: z.number(),
  }),
});

/**
 * A program that sells: for each line of its input it reserves a payment, settles it, and marks its
 * answer as sent. `scripts/write-program-fixture.ts` keeps it as it was at each release. It ends
 * with its input.
 */
async function main(argument: string): Promise<void> {
  const { network, rpcUrl, seedPhrase, addressCount, ...options } = taskSchema.parse(
    JSON.parse(argument),
  );
  const facilitator = createFacilitator({
    networks: [
      { network, rpcUrls: [rpcUrl], relayer: { seedPhrase, addressCount }, finalAfter: 2 },
    ],
    ...options,
    times: { leaseMs: 1_500, settlingMs: 200 },
  });
  await facilitator.ready();
  console.log(JSON.stringify({ ready: true }));

  async function sell(line: string): Promise<void> {
    const { number, ...payment } = requestSchema.parse(JSON.parse(line));
    const outcome = await settle(payment).catch((error: unknown) => String(error));
    console.log(JSON.stringify({ number, outcome }));
  }

  async function settle({
    authorization,
    paymentPayload,
    paymentRequirements,
  }: Omit<z.infer<typeof requestSchema>, "number">): Promise<string> {
    const { from, to, nonce, value, validBefore } = authorization;
    const reserved = await facilitator.reserve({
      id: {
        network,
        asset: toLowerHex(paymentRequirements.asset),
        payer: toLowerHex(from),
        nonce,
      },
      fingerprint: `GET /weather ${nonce}`,
      value,
      validBefore,
      payTo: toLowerHex(to),
    });
    if (reserved.state !== "reserved" && reserved.state !== "resumed") return reserved.state;
    const { reservation } = reserved;
    const settled = await facilitator.settle(paymentPayload, paymentRequirements, { reservation });
    if (!settled.success) return settled.errorReason ?? "failed";
    await facilitator.deliver(reservation);
    return "sold";
  }

  const sales: Promise<void>[] = [];
  for await (const line of createInterface({ input: process.stdin })) sales.push(sell(line));
  await Promise.all(sales);
  await facilitator.close();
}

await main(process.argv[2] ?? "");
