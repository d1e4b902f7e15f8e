import { spawn } from "node:child_process";
import { once } from "node:events";
import { useProgram } from "@coinslot/devnet/use-program";
import { channelIdOf, type Hex, toLowerHex, voucherTypedData } from "@coinslot/protocol";
import { numberToHex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, it, onTestFinished } from "vitest";
import { openChannelSeller } from "../../testing/channel-seller.ts";
import { copyMigratedLedger } from "../../testing/migrated-ledger.ts";
import type { SellInChildTask } from "../../testing/sell-in-child.ts";
import { engines } from "../../testing/settling-devnet.ts";

const program = useProgram(new URL("../../testing/sell-in-child.ts", import.meta.url));

const network = "eip155:9745";
const account = (value: number): Hex => numberToHex(value, { size: 20 });
const contract = account(0x4020);
const receiverAuthorizer = account(4);

/** Points of a request, with what stands in the ledger for it then. */
const points = [
  { dieAt: "channel_admitted", charged: 0n, next: "admitted" },
  { dieAt: "channel_charged", charged: 10n, next: "repeated" },
  { dieAt: "channel_lowered", charged: 4n, next: "repeated" },
  { dieAt: "channel_delivered", charged: 4n, next: "corrected" },
] as const;

describe.each(engines)("a process that is killed while it sells by a channel, on %s", (engine) => {
  it.each(points.flatMap((point) => [true, false].map((isSafe) => ({ ...point, isSafe }))))(
    "a seller killed at $dieAt, safe: $isSafe, has charged $charged, and the same request is $next",
    async (point) => {
      const place = await copyMigratedLedger(engine);
      onTestFinished(() => place.drop());
      const signer = privateKeyToAccount(generatePrivateKey());
      const channelConfig = {
        payer: account(1),
        payerAuthorizer: toLowerHex(signer.address),
        receiver: account(3),
        receiverAuthorizer,
        token: account(5),
        withdrawDelay: 86_400,
        salt: numberToHex(0, { size: 32 }),
      };
      const channelId = channelIdOf(channelConfig, { network, contract });
      const message = { channelId, maxClaimableAmount: 10n };
      const data = voucherTypedData(message, { network, contract });
      const signature = await signer.signTypedData(data);
      const voucher = { ...message, signature };
      const { isSafe, dieAt } = point;
      const task: SellInChildTask = {
        ledger: place.url,
        contract,
        receiverAuthorizer,
        dieAt,
        request: {
          network,
          channelConfig,
          voucher: { ...voucher, maxClaimableAmount: "10" },
          isSafe,
        },
      };
      const child = spawn(process.execPath, [program(), JSON.stringify(task)], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      onTestFinished(() => void child.kill("SIGKILL"));
      const ended = once(child, "exit");
      await Promise.race([once(child.stdout, "data"), ended]);
      child.kill("SIGKILL");
      await ended;

      const seller = await openChannelSeller({
        url: place.url,
        network,
        contract,
        receiverAuthorizer,
        look: async () => ({
          balance: 1_000n,
          totalClaimed: 0n,
          withdrawRequestedAt: 0,
          refundNonce: 0n,
          secure: 1_000n,
        }),
      });
      onTestFinished(seller.close);
      // Passing of the lease of the dead one. On SQLite the next process knows it dead.
      if (engine === "postgres") {
        await seller.execute("update processes set heartbeat_at = 0 where id <> 'seller'");
      }
      expect(await seller.chargedOf(channelId)).toBe(point.charged);
      const request = {
        network,
        route: "GET /weather",
        presented: { channelConfig, voucher },
        price: 10n,
        fingerprint: "GET /weather",
        isSafe,
        isGone: () => false,
      } as const;
      const admission = await seller.sales.admit(request);
      expect(admission.state).toBe(point.next);
      if (admission.state === "admitted") {
        const charge = await admission.run.charge({ amount: 10n });
        expect(charge.state).toBe("charged");
        if (charge.state === "charged") charge.deliver();
      }
      if (admission.state === "repeated") {
        expect(await admission.repeat.beginRun()).toBe(true);
        admission.repeat.deliver();
      }
      expect((await seller.sales.admit(request)).state).toBe("corrected");
      const charged = point.charged === 0n ? 10n : point.charged;
      expect(await seller.chargedOf(channelId)).toBe(charged);
    },
  );
});
