import { createMutex, type Mutex } from "@coinslot/concurrency";
import type { DevAccount } from "@coinslot/devnet";
import type { Hex, SettleResponse } from "@coinslot/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CoinslotFacilitator } from "../../create-facilitator.ts";
import { cancel, reserve, settle, useSettlingDevnet } from "../../testing/settling-actions.ts";
import type { SettlingDevnet } from "../../testing/settling-devnet.ts";
import { createWallet, payBy, walletSignature } from "../../testing/wallets.ts";

const begin = useSettlingDevnet();

/** The changes of an account and its payment, between trial and transaction. */
const tricks = [
  "cancels",
  "delegates",
  "undelegates",
  "lies by its origin",
  "lies by cold storage",
  "lies by the block",
  "signs at length",
  "signs its nonce twice",
  "expires soon",
] as const;
type Trick = (typeof tricks)[number];

const hexes = fc.uint8Array({ maxLength: 4_096 }).map(toHex);
const hostile = fc.record({
  kind: fc.constant("hostile" as const),
  trick: fc.constantFrom(...tricks),
  signature: hexes,
  reserves: fc.boolean(),
});
const honest = fc.constant({ kind: "honest" as const });
interface Hostile {
  kind: "hostile";
  trick: Trick;
  signature: Hex;
  reserves: boolean;
}
type Composed = Hostile | { kind: "honest" };

function toHex(bytes: Uint8Array): Hex {
  return `0x${Buffer.from(bytes).toString("hex")}`;
}

interface Place {
  /** The deployer sends for all accounts: one transaction after the other, for its nonces. */
  inTurn: Mutex["run"];
  here: SettlingDevnet;
  facilitator: CoinslotFacilitator;
  account: DevAccount;
}

/** Settles one payment, and applies the trick to it. */
async function play(
  place: Place,
  { trick, signature, reserves }: Hostile,
): Promise<SettleResponse> {
  const { here, facilitator, account, inTurn } = place;
  const { devnet, pay } = here;
  const { seller, deployer } = devnet.accounts;
  await inTurn(() => devnet.delegate(account));
  await devnet.mint({ to: account.address, amount: 10_000n });
  const wallet = trick.startsWith("lies") ? await createWallet(here) : undefined;
  if (trick === "undelegates" || trick === "signs at length") {
    const delegate = await devnet.deployLyingWallet();
    await inTurn(() => devnet.delegate(account, delegate));
  }
  const paid = await (wallet
    ? payBy(here, wallet)
    : pay({
        signer: account,
        ...(trick === "undelegates" && { changeSignature: () => walletSignature }),
        ...(trick === "signs at length" && { changeSignature: () => signature }),
        ...(trick === "expires soon" && {
          authorization: { validBefore: BigInt(Math.floor(Date.now() / 1_000) + 9) },
        }),
      }));
  // Some are not accepted: an account that had no code a moment ago, or has burnt gas in another
  // run.
  const held = reserves ? await reserve(facilitator, paid).catch(() => undefined) : undefined;
  const { nonce } = paid.authorization;
  const settling = held ? undefined : settle(facilitator, paid);
  settling?.catch(() => undefined);
  switch (trick) {
    case "cancels":
      await inTurn(() => cancel(here, account, paid));
      break;
    case "delegates": {
      const delegate = await devnet.deployLyingWallet();
      await inTurn(() => devnet.delegate(account, delegate));
      await devnet.setLie(account.address, "hasOrigin");
      break;
    }
    case "undelegates":
      await inTurn(() => devnet.delegate(account));
      break;
    case "lies by its origin":
      if (wallet) await devnet.setLie(wallet, "hasOrigin");
      break;
    case "lies by cold storage":
      if (wallet) await devnet.setLie(wallet, "hasColdBalance", BigInt(seller.address));
      break;
    case "lies by the block": {
      const block = await devnet.client.getBlockNumber();
      if (wallet) await devnet.setLie(wallet, "afterBlock", block + 2n);
      break;
    }
    case "signs its nonce twice": {
      const other = await pay({
        signer: account,
        payTo: deployer.address,
        authorization: { nonce },
      });
      await facilitator.verify(other.paymentPayload, other.paymentRequirements);
      break;
    }
  }
  return settling ?? settle(facilitator, paid, held);
}

describe("a random mix of hostile payers", () => {
  it("fails or delays its own payments alone, and the others settle", {
    timeout: 120_000,
  }, async () => {
    const here = await begin();
    const { devnet, start, pay } = here;
    const inTurn = createMutex().run;
    const facilitator = await start({ payersWithCode: { gasPerMinute: 100_000_000n } });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(hostile, honest), { minLength: 2, maxLength: 8 }),
        async (composed: Composed[]) => {
          const settled = composed.map(async (each, index) => {
            const account = devnet.accounts.others[index];
            if (account === undefined) throw new Error("No account");
            if (each.kind === "hostile") {
              await play({ here, facilitator, account, inTurn }, each).catch((error: Error) => {
                expect(error.name).toBe("FacilitatorError");
              });
            } else expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
          });
          await Promise.all(settled);
          expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
        },
      ),
      { numRuns: 8, endOnFailure: true },
    );
  });
});
