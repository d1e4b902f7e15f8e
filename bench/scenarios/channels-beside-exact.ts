import { mkdtemp, rm } from "node:fs/promises";
import { Agent } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startDevnet } from "@coinslot/devnet";
import { bundleProgram } from "@coinslot/devnet/bundle-program";
import { encodePaymentPayload } from "@coinslot/protocol";
import { zeroHash } from "viem";
import { channelRequirements, createChannelBuyer, offerOf } from "../support/channel-buyers.ts";
import type { Figure } from "../support/figure.ts";
import { getPaid } from "../support/get-paid.ts";
import { type SellerProcess, startSellerProcess } from "../support/seller.ts";
import { fundPayers, requirementsOf, signPayments } from "../support/signed-payments.ts";
import { takeTurns, turns } from "../support/take-turns.ts";

const buyers = 128;
const byChannel = { warmUp: 40 * buyers, perTurn: 16 * buyers };
const byExact = { warmUp: 2_048, perTurn: 2_048 };

/** Processor time of our seller for a paid GET: by a channel, and by a transfer of its own. */
export async function channelsBesideExact(): Promise<Figure[]> {
  const devnet = await startDevnet({ accountCount: 40 });
  const folder = await mkdtemp(join(tmpdir(), "coinslot-bench-"));
  const agent = new Agent({ keepAlive: true, maxSockets: buyers, timeout: 2_000 });
  const sellers: SellerProcess[] = [];
  try {
    await fundPayers(devnet);
    const source = new URL("../support/seller-process.ts", import.meta.url);
    const program = await bundleProgram(source, folder, { minifies: true });
    const requirements = channelRequirements();
    const channelSeller = await startSellerProcess(program, {
      ...{ kind: "channels", ledger: `sqlite:${join(folder, "channels.db")}`, requirements },
      ...{ rpcUrl: "", chainId: 9745, relayer: { privateKey: zeroHash } },
    });
    sellers.push(channelSeller);
    const exactSeller = await startSellerProcess(program, {
      ...{ kind: "ours", ledger: `sqlite:${join(folder, "exact.db")}` },
      ...{ rpcUrl: devnet.rpcUrl, chainId: devnet.chainId },
      relayer: { privateKey: devnet.accounts.relayer.privateKey },
      requirements: requirementsOf(devnet),
    });
    sellers.push(exactSeller);
    const offer = await offerOf(channelSeller);
    const count = byChannel.warmUp + turns * byChannel.perTurn;
    const signed = await Promise.all(
      Array.from({ length: buyers }, () =>
        createChannelBuyer(requirements).sign(offer, Math.ceil((2 * count) / buyers)),
      ),
    );
    const payments = await signPayments(devnet, byExact.warmUp + turns * byExact.perTurn);
    const buy = ({ port }: SellerProcess, header: string) => getPaid({ port, agent, header });
    const processorSecondsOf = (seller: SellerProcess) => async () =>
      (await seller.usage()).processorSeconds;
    const { processorMs } = await takeTurns<string>(devnet, {
      ours: {
        ...byChannel,
        jobs: Array.from({ length: count }, () => ""),
        // The buyer that waits longest: none has two requests at once.
        run: async () => {
          const headers = signed.shift();
          const header = headers?.shift();
          if (headers === undefined || header === undefined) throw new Error("No voucher is left.");
          await buy(channelSeller, header);
          signed.push(headers);
        },
        processorSeconds: processorSecondsOf(channelSeller),
      },
      reference: {
        ...byExact,
        jobs: payments.map(encodePaymentPayload),
        run: (header) => buy(exactSeller, header),
        processorSeconds: processorSecondsOf(exactSeller),
      },
    });
    return [
      {
        scenario: "processor time of the seller for a paid GET by a channel, beside our exact",
        ours: { value: processorMs.ours, unit: "ms" },
        ratio: {
          value: processorMs.ours / processorMs.reference,
          to: `${processorMs.reference.toFixed(2)} ms by exact`,
        },
        goal: { of: "ratio", atMost: 0.5 },
      },
    ];
  } finally {
    agent.destroy();
    for (const seller of sellers) await seller.stop();
    await rm(folder, { recursive: true, force: true });
    await devnet.stop();
  }
}
