import { domainSeparator } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { misbehavingToken } from "../contracts/misbehaving-token.generated.ts";
import { type Behaviour, behaviours } from "./contract-modes.ts";
import { type Devnet, startDevnet } from "./devnet.ts";
import { createTokenFixture, eventsOf } from "./token-fixture.ts";

let devnet: Devnet;

beforeAll(async () => {
  devnet = await startDevnet();
});

afterAll(() => devnet.stop());

/** A token with one fault, and with 1000 units in the hands of the buyer. */
async function tokenThat(behaviour: Behaviour) {
  const address = await devnet.deployMisbehavingToken(behaviour);
  const token = createTokenFixture({ devnet, token: address });
  const contract = { address, abi: misbehavingToken.abi } as const;
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1000n, token: address });

  /** Has the buyer pay the seller; returns what happened. */
  async function pay(value: bigint) {
    const authorization = token.authorize({ value });
    const signature = await token.sign(authorization);
    const receipt = await token.transfer(authorization, signature, { gas: 1_000_000n });
    const received = await token.balanceOf(devnet.accounts.seller.address);
    return { authorization, signature, receipt, received };
  }

  return { ...token, contract, pay };
}

describe("a misbehaving token", () => {
  it("is honest when set so", async () => {
    const token = await tokenThat("honest");
    const { receipt, received, authorization } = await token.pay(100n);
    expect(received).toBe(100n);
    expect(eventsOf(receipt)).toEqual([
      {
        eventName: "AuthorizationUsed",
        args: { authorizer: authorization.from, nonce: authorization.nonce },
      },
      {
        eventName: "Transfer",
        args: { from: authorization.from, to: authorization.to, value: 100n },
      },
    ]);
  });

  it("ignoresReplay: accepts a used authorization silently", async () => {
    const token = await tokenThat("ignoresReplay");
    const { authorization, signature } = await token.pay(100n);
    const again = await token.transfer(authorization, signature);
    expect(again.status).toBe("success");
    expect(again.logs).toEqual([]);
    expect(await token.balanceOf(authorization.to)).toBe(100n);
  });

  it("emitsNoTransfer: moves tokens without a Transfer", async () => {
    const token = await tokenThat("emitsNoTransfer");
    const { receipt, received } = await token.pay(100n);
    expect(eventsOf(receipt).map(({ eventName }) => eventName)).toEqual(["AuthorizationUsed"]);
    expect(received).toBe(100n);
  });

  it("transfersLess: moves and emits one unit less", async () => {
    const token = await tokenThat("transfersLess");
    const { receipt, received, authorization } = await token.pay(100n);
    expect(eventsOf(receipt)[1]?.args).toEqual({
      from: authorization.from,
      to: authorization.to,
      value: 99n,
    });
    expect(received).toBe(99n);
  });

  it("emitsOtherSender: names another sender in the Transfer", async () => {
    const token = await tokenThat("emitsOtherSender");
    const { receipt, received, authorization } = await token.pay(100n);
    expect(eventsOf(receipt)[1]?.args).toEqual({
      from: token.contract.address,
      to: authorization.to,
      value: 100n,
    });
    expect(received).toBe(100n);
  });

  it("emitsTransferFirst: emits Transfer before AuthorizationUsed", async () => {
    const token = await tokenThat("emitsTransferFirst");
    const { receipt, authorization, signature } = await token.pay(100n);
    expect(eventsOf(receipt).map(({ eventName }) => eventName)).toEqual([
      "Transfer",
      "AuthorizationUsed",
    ]);
    await expect(token.transfer(authorization, signature)).rejects.toThrow("used or canceled");
  });

  it("burnsGas: consumes all its gas", async () => {
    const { receipt } = await (await tokenThat("burnsGas")).pay(100n);
    expect(receipt.status).toBe("reverted");
    expect(receipt.gasUsed).toBeGreaterThan(980_000n);
  });

  it("reverts: reverts, for little gas", async () => {
    const { receipt } = await (await tokenThat("reverts")).pay(100n);
    expect(receipt.status).toBe("reverted");
    expect(receipt.gasUsed).toBeLessThan(100_000n);
  });

  it("wrongDomainSeparator: signs in a domain that differs from its name and version", async () => {
    const token = await tokenThat("wrongDomainSeparator");
    const separator = await devnet.client.readContract({
      ...token.contract,
      functionName: "DOMAIN_SEPARATOR",
    });
    expect(separator).not.toBe(domainSeparator({ domain: token.domain }));
    const authorization = token.authorize({ value: 1n });
    await expect(token.transfer(authorization, await token.sign(authorization))).rejects.toThrow(
      "FiatTokenV2: invalid signature",
    );
  });

  it("takesFee: the payee receives less, the payer pays all", async () => {
    const token = await tokenThat("takesFee");
    const { receipt, received, authorization } = await token.pay(100n);
    expect(eventsOf(receipt).filter(({ eventName }) => eventName === "Transfer")).toHaveLength(2);
    expect(received).toBe(99n);
    expect(await token.balanceOf(authorization.from)).toBe(900n);
  });

  it("returnsNothing: transfer and transferFrom return no data, and move the tokens", async () => {
    const token = await tokenThat("returnsNothing");
    const { client, accounts } = devnet;
    const to = accounts.seller.address;
    const account = accounts.buyer;
    const call = { ...token.contract, account, functionName: "transfer", args: [to, 3n] } as const;
    await expect(client.simulateContract(call)).rejects.toThrow('returned no data ("0x")');
    await client.waitForTransactionReceipt({ hash: await client.writeContract(call) });
    expect(await token.balanceOf(to)).toBe(3n);
  });

  it("changes its behaviour when set so", async () => {
    const token = await tokenThat("reverts");
    expect((await token.pay(1n)).receipt.status).toBe("reverted");
    const args = [behaviours.honest] as const;
    const hash = await devnet.client.writeContract({
      ...token.contract,
      functionName: "setBehaviour",
      args,
    });
    await devnet.client.waitForTransactionReceipt({ hash });
    expect((await token.pay(1n)).receipt.status).toBe("success");
  });

  it("shows any balance, without a Transfer", async () => {
    const token = await tokenThat("honest");
    const holder = devnet.accounts.relayer.address;
    const args = [holder, 2n ** 256n - 1n] as const;
    const hash = await devnet.client.writeContract({
      ...token.contract,
      functionName: "setBalance",
      args,
    });
    expect((await devnet.client.waitForTransactionReceipt({ hash })).logs).toEqual([]);
    expect(await token.balanceOf(holder)).toBe(2n ** 256n - 1n);
  });
});
