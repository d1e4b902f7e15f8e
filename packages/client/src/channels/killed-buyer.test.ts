import { useProgram } from "@coinslot/devnet/use-program";
import { expect, it, onTestFinished } from "vitest";
import type { ChannelSeller } from "../testing/channel-seller.ts";
import { type RunningScript, runScript } from "../testing/run-script.ts";
import { useChannels } from "../testing/use-channels.ts";

const { world, inFolder, sellerOf, createFetch, records, onChain } = useChannels();
const buyByChannel = useProgram(new URL("../testing/buy-by-channel.ts", import.meta.url));

function startBuyer(url: string): RunningScript {
  const { rpcUrl, accounts } = world.devnet();
  const { privateKey } = accounts.buyer;
  const files = [inFolder("channels.db"), inFolder("budget.json")];
  const running = runScript([process.execPath, buyByChannel(), url, rpcUrl, privateKey, ...files]);
  onTestFinished(async () => {
    running.child.kill("SIGKILL");
    await running.ended;
  });
  return running;
}

/** Kills the buyer when its n-th voucher has arrived, before or after it was charged. */
async function killAt(count: number, isCharged: boolean): Promise<ChannelSeller> {
  let buyer: RunningScript | undefined;
  const seller: ChannelSeller = await sellerOf({
    onPaid: async (paid, response, at) => {
      if (at !== count) return false;
      if (isCharged) {
        await seller.deposit(paid);
        const { ceiling: signed, id } = paid;
        const { signature } = paid.payload.voucher;
        seller.books.set(id, { charged: signed, signed, signature });
      }
      buyer?.child.kill("SIGKILL");
      response.destroy();
      return true;
    },
  });
  buyer = startBuyer(seller.url);
  await buyer.ended;
  expect(buyer.child.signalCode).toBe("SIGKILL");
  return seller;
}

for (const count of [1, 3]) {
  for (const isCharged of [false, true]) {
    const when = isCharged ? "after" : "before";
    it(`a buyer killed ${when} its voucher ${count} is charged has stored its ceiling, and goes on`, async () => {
      const seller = await killAt(count, isCharged);
      const [record] = await records();
      const last = seller.paid.at(-1)?.ceiling ?? 0n;
      expect(record?.ceiling).toBe(last);
      const { signed: before = 0n } = seller.books.get(record?.id ?? "0x") ?? {};

      const budget = { file: inFolder("budget.json") };
      const response = await createFetch({}, { budget })(seller.url);
      expect(response.status).toBe(200);
      const [after] = await records();
      expect(after?.charged).toBe(isCharged ? before + 1000n : last);
      expect(after?.ceiling).toBe(after?.charged);
      // One deposit, whatever was lost.
      expect(await onChain(record?.id)).toMatchObject({ balance: 10_000n });
    });
  }
}
