import { type Clock, systemClock } from "@coinslot/chain";
import { devSeedPhrase, multicall3, testUsdt0 } from "@coinslot/devnet";
import {
  type AuthorizationId,
  type Hex,
  type Reservation,
  type SoldItem,
  toLowerHex,
} from "@coinslot/protocol";
import { encodeFunctionData, type LocalAccount } from "viem";
import { mnemonicToAccount } from "viem/accounts";
import { afterEach, expect } from "vitest";
import type { CoinslotFacilitator } from "../create-facilitator.ts";
import type { SettlementEvent } from "../settle/settlement-event.ts";
import { type SettlingDevnet, startSettlingDevnet } from "./settling-devnet.ts";

type Paid = Awaited<ReturnType<SettlingDevnet["pay"]>>;

/** Makes what starts a devnet for a test, which ends with that. */
export function useSettlingDevnet(): (options?: { chainId?: number }) => Promise<SettlingDevnet> {
  let settling: SettlingDevnet | undefined;
  afterEach(async () => {
    await settling?.stop();
    settling = undefined;
  });
  return async (options) => {
    settling = await startSettlingDevnet("sqlite", options);
    return settling;
  };
}

/** Verifies and reserves, as a gate does before it runs a handler. */
export async function reserve(
  facilitator: CoinslotFacilitator,
  paid: Paid,
  sold?: SoldItem,
): Promise<Reservation> {
  const { paymentPayload, paymentRequirements, authorization } = paid;
  const verified = await facilitator.verify(paymentPayload, paymentRequirements);
  expect(verified).toMatchObject({ isValid: true });
  const { balance } = "balance" in verified ? verified : {};
  const reserved = await facilitator.reserve({
    id: idOf(paid),
    fingerprint: "GET /a",
    value: authorization.value,
    validBefore: authorization.validBefore,
    payTo: toLowerHex(authorization.to),
    balance,
    sold,
  });
  if (reserved.state !== "reserved") throw new Error(reserved.state);
  return reserved.reservation;
}

/** The ledger's identity of a payment. */
export function idOf({ paymentRequirements, authorization }: Paid): AuthorizationId {
  return {
    network: paymentRequirements.network,
    asset: `0x${paymentRequirements.asset.slice(2).toLowerCase()}`,
    payer: `0x${authorization.from.slice(2).toLowerCase()}`,
    nonce: authorization.nonce,
  };
}

/** Settles a payment, reserved or not. */
export function settle(facilitator: CoinslotFacilitator, paid: Paid, reservation?: Reservation) {
  return facilitator.settle(paid.paymentPayload, paid.paymentRequirements, { reservation });
}

/** Submits the authorization as a third party who has seen it. */
export async function submitAsStranger({ devnet }: Pick<SettlingDevnet, "devnet">, paid: Paid) {
  const hash = await devnet.client.sendTransaction({
    account: devnet.accounts.deployer,
    to: devnet.token,
    data: transferCall(paid),
  });
  await devnet.client.waitForTransactionReceipt({ hash });
  return hash;
}

/** Signs a transaction of a third party for the authorization, and sends nothing. */
export async function signAsStranger({ devnet }: SettlingDevnet, paid: Paid): Promise<Hex> {
  const { client, chainId, token } = devnet;
  const { deployer } = devnet.accounts;
  const fees = await client.estimateFeesPerGas();
  return deployer.signTransaction({
    ...fees,
    chainId,
    nonce: await client.getTransactionCount({ address: deployer.address }),
    to: token,
    data: transferCall(paid),
    gas: 200_000n,
  });
}

/** Executes several authorizations in one transaction of another sender. */
export async function submitTogether({ devnet }: SettlingDevnet, payments: readonly Paid[]) {
  const hash = await devnet.client.writeContract({
    account: devnet.accounts.deployer,
    address: devnet.multicall3,
    abi: multicall3.abi,
    functionName: "aggregate3",
    args: [
      payments.map((paid) => ({
        target: devnet.token,
        allowFailure: false,
        callData: transferCall(paid),
      })),
    ],
  });
  await devnet.client.waitForTransactionReceipt({ hash });
  return hash;
}

function transferCall({ authorization, signature }: Paid) {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  return encodeFunctionData({
    abi: testUsdt0.abi,
    functionName: "transferWithAuthorization",
    args: [from, to, value, validAfter, validBefore, nonce, signature],
  });
}

/** Cancels the authorization, as its signer may. */
export async function cancel(
  { devnet }: Pick<SettlingDevnet, "devnet">,
  signer: LocalAccount,
  paid: Paid,
) {
  const { nonce } = paid.authorization;
  const signature = await signer.signTypedData({
    domain: {
      name: "USDT0",
      version: "1",
      chainId: devnet.chainId,
      verifyingContract: devnet.token,
    },
    types: {
      CancelAuthorization: [
        { name: "authorizer", type: "address" },
        { name: "nonce", type: "bytes32" },
      ],
    },
    primaryType: "CancelAuthorization",
    message: { authorizer: signer.address, nonce },
  });
  const hash = await devnet.client.writeContract({
    account: devnet.accounts.deployer,
    address: devnet.token,
    abi: testUsdt0.abi,
    functionName: "cancelAuthorization",
    args: [signer.address, nonce, signature],
    // Without an estimate: one that comes after the settlement reverts in its block.
    gas: 200_000n,
  });
  await devnet.client.waitForTransactionReceipt({ hash });
}

/** Takes all that the buyer has. */
export async function drain({ devnet, balanceOf }: SettlingDevnet): Promise<void> {
  const { buyer, deployer } = devnet.accounts;
  const hash = await devnet.client.writeContract({
    account: buyer,
    address: devnet.token,
    abi: testUsdt0.abi,
    functionName: "transfer",
    args: [deployer.address, await balanceOf(buyer.address)],
  });
  await devnet.client.waitForTransactionReceipt({ hash });
}

/** Collects the facilitator's events from now on. */
export function listen(facilitator: CoinslotFacilitator): SettlementEvent["type"][] {
  const events: SettlementEvent["type"][] = [];
  facilitator.onEvent(({ type }) => events.push(type));
  return events;
}

/**
 * Options of a facilitator whose requests wait until the test ends them: however long a payment
 * takes to a block, it has come as far as the test waited for.
 */
export function holdRequests(now = systemClock.now): {
  options: { settleTimeoutSeconds: number; clock: Clock };
  /** Ends the requests that wait, as their time limit does. */
  end(): void;
} {
  const settleTimeoutSeconds = 3_600;
  const waiting = new Set<() => void>();
  return {
    options: {
      settleTimeoutSeconds,
      clock: {
        now,
        setTimer(run, ms) {
          if (ms !== settleTimeoutSeconds * 1_000) return systemClock.setTimer(run, ms);
          waiting.add(run);
          return () => void waiting.delete(run);
        },
      },
    },
    end() {
      for (const run of waiting) run();
      waiting.clear();
    },
  };
}

/** Address of the development seed phrase's relayer, and of those behind it, as leases name it. */
export function devRelayer(index: number): string {
  const { address } = mnemonicToAccount(devSeedPhrase, { addressIndex: 1 + index });
  return toLowerHex(address);
}
