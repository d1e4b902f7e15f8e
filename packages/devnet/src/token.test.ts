import { type Address, domainSeparator, parseSignature, serializeSignature, toHex } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Devnet, startDevnet } from "./devnet.ts";
import {
  createTokenFixture,
  eventsOf,
  signatureForms,
  split,
  type TokenFixture,
} from "./token-fixture.ts";

const curveOrder = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

let devnet: Devnet;
let token: TokenFixture;
let buyer: Address;
let seller: Address;

beforeAll(async () => {
  devnet = await startDevnet();
  token = createTokenFixture({ devnet, token: devnet.token });
  buyer = devnet.accounts.buyer.address;
  seller = devnet.accounts.seller.address;
  await devnet.mint({ to: buyer, amount: 1_000_000_000n });
});

afterAll(() => devnet.stop());

describe("the token's description", () => {
  it("equals that of USDT0 on Plasma", async () => {
    const read = <const T extends "name" | "version" | "symbol" | "decimals">(functionName: T) =>
      devnet.client.readContract({ ...token.contract, functionName });
    expect(await read("name")).toBe("USDT0");
    expect(await read("version")).toBe("1");
    expect(await read("symbol")).toBe("USDT0");
    expect(await read("decimals")).toBe(6);
    expect(devnet.token).toBe("0xB8CE59FC3717ada4C02eaDF9682A9e934F625ebb");
  });

  it("has the EIP-712 domain of its name, version, chain and address", async () => {
    const { client } = devnet;
    expect(await client.readContract({ ...token.contract, functionName: "DOMAIN_SEPARATOR" })).toBe(
      domainSeparator({ domain: token.domain }),
    );
    const { domain } = await client.getEip712Domain({ address: devnet.token });
    expect(domain).toMatchObject(token.domain);
  });
});

describe.each(signatureForms)("transferWithAuthorization with the signature as %s", (form) => {
  it("moves the tokens, and emits AuthorizationUsed before Transfer", async () => {
    const before = await token.balanceOf(seller);
    const authorization = token.authorize({ value: 1000n });
    const receipt = await token.transfer(authorization, await token.sign(authorization), { form });
    expect(eventsOf(receipt)).toEqual([
      { eventName: "AuthorizationUsed", args: { authorizer: buyer, nonce: authorization.nonce } },
      { eventName: "Transfer", args: { from: buyer, to: seller, value: 1000n } },
    ]);
    expect(await token.balanceOf(seller)).toBe(before + 1000n);
    const args = [buyer, authorization.nonce] as const;
    expect(
      await devnet.client.readContract({
        ...token.contract,
        functionName: "authorizationState",
        args,
      }),
    ).toBe(true);
  });

  it.each(signatureForms)("refuses a used authorization, presented again as %s", async (again) => {
    const authorization = token.authorize({ value: 1n });
    const signature = await token.sign(authorization);
    await token.transfer(authorization, signature, { form });
    await expect(token.transfer(authorization, signature, { form: again })).rejects.toThrow(
      "FiatTokenV2: authorization is used or canceled",
    );
  });

  it("refuses another account's signature", async () => {
    const authorization = token.authorize({ value: 1n });
    const signature = await token.sign(authorization, devnet.accounts.relayer);
    await expect(token.transfer(authorization, signature, { form })).rejects.toThrow(
      "FiatTokenV2: invalid signature",
    );
  });

  it("refuses a changed amount", async () => {
    const authorization = token.authorize({ value: 1n });
    const signature = await token.sign(authorization);
    await expect(
      token.transfer({ ...authorization, value: 2n }, signature, { form }),
    ).rejects.toThrow("FiatTokenV2: invalid signature");
  });

  it("refuses the malleable twin of a signature, with a high s", async () => {
    const authorization = token.authorize({ value: 1n });
    const { r, s, yParity } = parseSignature(await token.sign(authorization));
    const highS = toHex(curveOrder - BigInt(s), { size: 32 });
    const twin = serializeSignature({ r, s: highS, yParity: 1 - yParity });
    await expect(token.transfer(authorization, twin, { form })).rejects.toThrow(
      "ECRecover: invalid signature 's' value",
    );
  });

  it("holds to validAfter and validBefore", async () => {
    const { timestamp } = await devnet.client.getBlock();
    const early = token.authorize({ value: 1n, validAfter: timestamp + 1000n });
    await expect(token.transfer(early, await token.sign(early), { form })).rejects.toThrow(
      "FiatTokenV2: authorization is not yet valid",
    );
    const late = token.authorize({ value: 1n, validBefore: timestamp });
    await expect(token.transfer(late, await token.sign(late), { form })).rejects.toThrow(
      "FiatTokenV2: authorization is expired",
    );
  });

  it("refuses more than the payer's balance", async () => {
    const authorization = token.authorize({ value: 10n ** 18n });
    await expect(
      token.transfer(authorization, await token.sign(authorization), { form }),
    ).rejects.toThrow("ERC20: transfer amount exceeds balance");
  });
});

describe("a signature as bytes", () => {
  it.each([0, 64, 66])("is refused with %i bytes", async (size) => {
    const authorization = token.authorize({ value: 1n });
    const signature = (await token.sign(authorization))
      .slice(2)
      .padEnd(132, "0")
      .slice(0, 2 * size);
    await expect(token.transfer(authorization, `0x${signature}`)).rejects.toThrow(
      "ECRecover: invalid signature length",
    );
  });

  it("is refused with v = 0 or 1", async () => {
    const authorization = token.authorize({ value: 1n });
    const { r, s, yParity } = parseSignature(await token.sign(authorization));
    const signature = `${r}${s.slice(2)}0${yParity}` as const;
    await expect(token.transfer(authorization, signature)).rejects.toThrow(
      "ECRecover: invalid signature 'v' value",
    );
  });
});

describe.each(signatureForms)("with the signature as %s", (form) => {
  it("a cancelled authorization reads as used, and moves nothing", async () => {
    const authorization = token.authorize({ value: 1n });
    const receipt = await token.cancel(
      authorization,
      await token.signCancellation(authorization),
      form,
    );
    expect(eventsOf(receipt)).toEqual([
      {
        eventName: "AuthorizationCanceled",
        args: { authorizer: buyer, nonce: authorization.nonce },
      },
    ]);
    const signature = await token.sign(authorization);
    await expect(token.transfer(authorization, signature, { form })).rejects.toThrow(
      "FiatTokenV2: authorization is used or canceled",
    );
    await expect(
      token.cancel(authorization, await token.signCancellation(authorization), form),
    ).rejects.toThrow("FiatTokenV2: authorization is used or canceled");
  });

  it("only the payer cancels", async () => {
    const authorization = token.authorize({ value: 1n });
    const signature = await token.signCancellation(authorization, devnet.accounts.relayer);
    await expect(token.cancel(authorization, signature, form)).rejects.toThrow(
      "FiatTokenV2: invalid signature",
    );
  });

  it("only the payee executes receiveWithAuthorization", async () => {
    const authorization = token.authorize({ value: 5n });
    const signature = await token.sign(
      authorization,
      devnet.accounts.buyer,
      "ReceiveWithAuthorization",
    );
    const { relayer, seller: payee } = devnet.accounts;
    await expect(
      token.receive(authorization, signature, { form, account: relayer }),
    ).rejects.toThrow("FiatTokenV2: caller must be the payee");
    await expect(token.transfer(authorization, signature, { form })).rejects.toThrow(
      "FiatTokenV2: invalid signature",
    );
    const receipt = await token.receive(authorization, signature, { form, account: payee });
    expect(eventsOf(receipt).map(({ eventName }) => eventName)).toEqual([
      "AuthorizationUsed",
      "Transfer",
    ]);
  });
});

describe("permit", () => {
  it("lets the spender take the amount, once", async () => {
    const { client, accounts } = devnet;
    const spender = accounts.relayer;
    const nonce = await client.readContract({
      ...token.contract,
      functionName: "nonces",
      args: [buyer],
    });
    const permit = {
      owner: buyer,
      spender: spender.address,
      value: 50n,
      nonce,
      deadline: 2n ** 64n,
    };
    const signature = split(await token.signPermit(permit));
    const args = [buyer, spender.address, permit.value, permit.deadline, ...signature] as const;
    const request = { ...token.contract, account: spender, functionName: "permit", args } as const;
    await client.waitForTransactionReceipt({ hash: await client.writeContract(request) });
    await expect(client.writeContract(request)).rejects.toThrow("EIP2612: invalid signature");

    const take = {
      ...token.contract,
      account: spender,
      functionName: "transferFrom",
      args: [buyer, seller, 50n],
    } as const;
    await client.waitForTransactionReceipt({ hash: await client.writeContract(take) });
    await expect(client.writeContract(take)).rejects.toThrow(
      "ERC20: transfer amount exceeds allowance",
    );
  });

  it("expires", async () => {
    const permit = { owner: buyer, spender: seller, value: 50n, nonce: 0n, deadline: 1n };
    const args = [buyer, seller, 50n, 1n, ...split(await token.signPermit(permit))] as const;
    await expect(
      devnet.client.simulateContract({ ...token.contract, functionName: "permit", args }),
    ).rejects.toThrow("FiatTokenV2: permit is expired");
  });
});

describe("the test token", () => {
  it("lets any account mint, and burn its own, as Transfers of the zero address", async () => {
    const { client, accounts } = devnet;
    const holder = accounts.others[1];
    if (!holder) throw new Error("The devnet has no other accounts.");
    const supply = () => client.readContract({ ...token.contract, functionName: "totalSupply" });
    const before = await supply();
    const minted = await devnet.mint({ to: holder.address, amount: 10n });
    const burned = await client.writeContract({
      ...token.contract,
      account: holder,
      functionName: "burn",
      args: [4n],
    });
    const zero = "0x0000000000000000000000000000000000000000";
    expect(eventsOf(await client.waitForTransactionReceipt({ hash: minted }))).toEqual([
      { eventName: "Transfer", args: { from: zero, to: holder.address, value: 10n } },
    ]);
    expect(eventsOf(await client.waitForTransactionReceipt({ hash: burned }))).toEqual([
      { eventName: "Transfer", args: { from: holder.address, to: zero, value: 4n } },
    ]);
    expect(await token.balanceOf(holder.address)).toBe(6n);
    expect(await supply()).toBe(before + 6n);
  });

  it("can block an account", async () => {
    const { client } = devnet;
    const setBlocked = async (blocked: boolean) => {
      const args = [buyer, blocked] as const;
      const hash = await client.writeContract({
        ...token.contract,
        functionName: "setBlocked",
        args,
      });
      await client.waitForTransactionReceipt({ hash });
    };
    const authorization = token.authorize({ value: 1n });
    const signature = await token.sign(authorization);
    await setBlocked(true);
    await expect(token.transfer(authorization, signature)).rejects.toThrow(
      "Blacklistable: account is blacklisted",
    );
    await setBlocked(false);
    expect((await token.transfer(authorization, signature)).status).toBe("success");
  });
});
