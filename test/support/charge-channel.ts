import { setTimeout as sleep } from "node:timers/promises";
import { createChannelFixture, type Devnet } from "@coinslot/devnet";
import type { CoinslotFacilitator } from "@coinslot/facilitator";

/** Price of a request, in the token's smallest unit. */
const price = 1_000n;
const deposited = 100_000n;
const lookMs = 50;
const maxLooks = 1_000;

/**
 * Opens a channel of the devnet's buyer, and charges requests on it. With `isWithdrawn` its payer
 * withdraws then, and no further block is mined: the claim waits for the next one.
 */
export async function chargeChannel(
  devnet: Devnet,
  facilitator: CoinslotFacilitator,
  { requests, isWithdrawn }: { requests: number; isWithdrawn: boolean },
): Promise<string> {
  // The relayer's nonces are the facilitator's own.
  const { deployer } = devnet.accounts;
  const accounts = { ...devnet.accounts, relayer: deployer };
  const channels = createChannelFixture({ ...devnet, accounts });
  const config = channels.configOf();
  const channelId = channels.idOf(config);
  await channels.deposit(config, deposited);
  for (let ceiling = price; ceiling <= price * BigInt(requests); ceiling += price) {
    const signature = await channels.signVoucher(config, ceiling);
    const voucher = { channelId, maxClaimableAmount: ceiling, signature };
    const request = {
      network: devnet.network,
      route: "GET /weather",
      presented: { channelConfig: config, voucher },
      price,
      fingerprint: `GET /weather ${ceiling}`,
      isSafe: true,
      isGone: () => false,
    };
    for (let looks = 0; ; looks += 1) {
      const admission = await facilitator.channels?.admit(request);
      if (admission?.state === "admitted") {
        const charge = await admission.run.charge({ amount: price });
        if (charge.state === "charged") charge.deliver();
        break;
      }
      if (looks === maxLooks) throw new Error(`Nothing was sold: ${admission?.state}`);
      await devnet.mine(1);
      await sleep(lookMs);
    }
  }
  if (!isWithdrawn) return channelId;
  await devnet.client.setAutomine(false);
  let isMined = false;
  const withdrawing = channels.withdraw(config, deposited).finally(() => {
    isMined = true;
  });
  while (!isMined) {
    await devnet.mine(1);
    await sleep(lookMs);
  }
  await withdrawing;
  return channelId;
}
