import type { Address } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { smartAccount } from "../contracts/smart-account.generated.ts";
import { smartAccountAnswers } from "./contract-modes.ts";
import { type Devnet, startDevnet } from "./devnet.ts";
import {
  createTokenFixture,
  eventsOf,
  signatureForms,
  type TokenFixture,
} from "./token-fixture.ts";

let devnet: Devnet;
let token: TokenFixture;
let buyer: Address;
let seller: Address;

beforeAll(async () => {
  devnet = await startDevnet();
  token = createTokenFixture({ devnet, token: devnet.token });
  buyer = devnet.accounts.buyer.address;
  seller = devnet.accounts.seller.address;
});

afterAll(() => devnet.stop());

describe.each(signatureForms)("a payer that is a contract, with the signature as %s", (form) => {
  it("pays when it accepts its owner's signature", async () => {
    const payer = await fundedSmartAccount();
    const authorization = token.authorize({ from: payer, value: 7n });
    const receipt = await token.transfer(authorization, await token.sign(authorization), { form });
    expect(eventsOf(receipt)).toContainEqual({
      eventName: "Transfer",
      args: { from: payer, to: seller, value: 7n },
    });
  });

  it("does not pay on the signature of another", async () => {
    const authorization = token.authorize({ from: await fundedSmartAccount(), value: 7n });
    const signature = await token.sign(authorization, devnet.accounts.relayer);
    await expect(token.transfer(authorization, signature, { form })).rejects.toThrow(
      "FiatTokenV2: invalid signature",
    );
  });

  it.each(["refuses", "reverts"] as const)("does not pay when it %s", async (answer) => {
    const authorization = token.authorize({ from: await fundedSmartAccount(answer), value: 7n });
    await expect(
      token.transfer(authorization, await token.sign(authorization), { form }),
    ).rejects.toThrow("FiatTokenV2: invalid signature");
  });

  it("can burn nearly all its gas", async () => {
    const authorization = token.authorize({
      from: await fundedSmartAccount("burnsGas"),
      value: 7n,
    });
    const receipt = await token.transfer(authorization, await token.sign(authorization), {
      form,
      gas: 3_000_000n,
    });
    expect(receipt.status).toBe("reverted");
    expect(receipt.gasUsed).toBeGreaterThan(2_900_000n);
  });

  async function fundedSmartAccount(answer: keyof typeof smartAccountAnswers = "honest") {
    const address = await devnet.deploySmartAccount({ owner: buyer, answer });
    await devnet.mint({ to: address, amount: 100n });
    return address;
  }
});

describe("an EIP-7702 account", () => {
  it("pays with its own key only while its delegate agrees", async () => {
    const { client, accounts } = devnet;
    const [payer] = accounts.others;
    if (!payer) throw new Error("The devnet has no other accounts.");
    const delegate = await devnet.deploySmartAccount();
    const authorization7702 = await client.signAuthorization({
      account: payer,
      contractAddress: delegate,
    });
    const hash = await client.sendTransaction({
      to: payer.address,
      authorizationList: [authorization7702],
    });
    await client.waitForTransactionReceipt({ hash });
    expect(await client.getCode({ address: payer.address })).toBe(
      `0xef0100${delegate.slice(2).toLowerCase()}`,
    );
    await devnet.mint({ to: payer.address, amount: 100n });

    const first = token.authorize({ from: payer.address, value: 1n });
    await token.transfer(first, await token.sign(first, payer));
    expect(await token.balanceOf(payer.address)).toBe(99n);

    const change = await client.writeContract({
      address: payer.address,
      abi: smartAccount.abi,
      functionName: "setAnswer",
      args: [smartAccountAnswers.refuses],
    });
    await client.waitForTransactionReceipt({ hash: change });
    const second = token.authorize({ from: payer.address, value: 1n });
    await expect(token.transfer(second, await token.sign(second, payer))).rejects.toThrow(
      "FiatTokenV2: invalid signature",
    );
  });
});
