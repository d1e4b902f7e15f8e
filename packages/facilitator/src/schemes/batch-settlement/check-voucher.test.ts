import {
  type ChannelFixture,
  createChannelFixture,
  type Devnet,
  placeChannels,
  startDevnet,
} from "@coinslot/devnet";
import {
  type ChannelConfig,
  channelContracts,
  channelPayloadSchema,
  channelSettlementAbi,
  type Hex,
  networkOf,
  toLowerHex,
} from "@coinslot/protocol";
import fc from "fast-check";
import { BaseError, ContractFunctionRevertedError, toHex, zeroAddress } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createSignerRecovery } from "../../evm/recover-signer.ts";
import { type ChannelDigests, createChannelDigests } from "./channel-digests.ts";
import { checkVoucher } from "./check-voucher.ts";

const { recoverSigner } = createSignerRecovery();
const deposited = 1_000_000n;
const curveOrder = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

let devnet: Devnet;
let channels: ChannelFixture;
let digests: ChannelDigests;
let config: ChannelConfig;

beforeAll(async () => {
  devnet = await startDevnet();
  await placeChannels(devnet);
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 2n * deposited });
  channels = createChannelFixture(devnet);
  digests = createChannelDigests({ network: devnet.network });
  config = channels.configOf();
  await channels.deposit(config, deposited);
});
afterAll(() => devnet?.stop());

/** A voucher as it travels, signed by the buyer unless the parts say otherwise. */
async function present(
  ceiling: bigint,
  parts: { signature?: string; channelId?: string; config?: Partial<ChannelConfig> } = {},
) {
  const signature = parts.signature ?? (await channels.signVoucher(config, ceiling));
  return {
    type: "voucher",
    channelConfig: { ...config, ...parts.config },
    voucher: {
      channelId: parts.channelId ?? channels.idOf(config),
      maxClaimableAmount: `${ceiling}`,
      signature,
    },
  };
}

/** Our verdict: the reason, or "malformed" where it is read as no payload at all. */
function judge(message: unknown, own = digests) {
  const read = channelPayloadSchema.safeParse(message);
  if (!read.success) return "malformed";
  const { receiver, receiverAuthorizer, token, withdrawDelay } = config;
  const terms = { receiver, receiverAuthorizer, token, withdrawDelay };
  return checkVoucher(read.data, { terms, digests: own, recoverSigner });
}

/** The escrow's verdict on a claim of one unit: the name of its error. */
async function ask({ channelConfig, voucher }: Awaited<ReturnType<typeof present>>) {
  const row = {
    voucher: {
      channel: channelConfig,
      maxClaimableAmount: BigInt(voucher.maxClaimableAmount),
    },
    signature: voucher.signature as Hex,
    totalClaimed: 1n,
  };
  try {
    await devnet.client.simulateContract({
      address: channelContracts.settlement,
      abi: channelSettlementAbi,
      functionName: "claim",
      args: [[row]],
      account: config.receiver,
    });
    return undefined;
  } catch (error) {
    const cause =
      error instanceof BaseError
        ? error.walk((each) => each instanceof ContractFunctionRevertedError)
        : undefined;
    if (!(cause instanceof ContractFunctionRevertedError)) throw error;
    return cause.data?.errorName ?? "unknown";
  }
}

describe("a voucher", () => {
  it("a voucher of the channel's signer is accepted, and can be claimed", async () => {
    for (const ceiling of [1n, deposited, 2n ** 128n - 1n]) {
      const message = await present(ceiling);
      expect(judge(message)).toBeUndefined();
      expect(await ask(message)).toBeUndefined();
    }
  });

  it("has one form of signature, as for the escrow: each other one is refused by both", async () => {
    const signature = await channels.signVoucher(config, 500n);
    const [r, s, v] = [signature.slice(2, 66), signature.slice(66, 130), signature.slice(130)];
    const parity = Number.parseInt(v, 16) - 27;
    const word = (value: bigint) => toHex(value, { size: 32 }).slice(2);
    const highS = word(curveOrder - BigInt(`0x${s}`));
    const forms: Record<string, string> = {
      "a high s": `0x${r}${highS}${parity === 0 ? "1c" : "1b"}`,
      "v as 0 or 1": `0x${r}${s}0${parity}`,
      "the other v": `0x${r}${s}${parity === 0 ? "1c" : "1b"}`,
      "v of a transaction": `0x${r}${s}25`,
      "64 bytes": `0x${r}${word(BigInt(`0x${s}`) | (BigInt(parity) << 255n))}`,
      "66 bytes": `${signature}00`,
      "zero in front": `0x00${signature.slice(2)}`,
      nothing: "0x",
      "r of zero": `0x${word(0n)}${s}${v}`,
      "s of zero": `0x${r}${word(0n)}${v}`,
      "r beyond the curve": `0x${word(curveOrder)}${s}${v}`,
    };
    for (const [name, form] of Object.entries(forms)) {
      const message = await present(500n, { signature: form });
      expect([name, judge(message)]).toEqual([
        name,
        "invalid_batch_settlement_evm_voucher_signature",
      ]);
      expect([name, await ask(message)]).toEqual([name, expect.stringMatching(/Signature/)]);
    }
  });

  it("a voucher in upper case is the same voucher, and with white space or an odd digit none", async () => {
    const signature = await channels.signVoucher(config, 500n);
    const upper = `0x${signature.slice(2).toUpperCase()}`;
    const loud = await present(500n, {
      signature: upper,
      channelId: `0x${channels.idOf(config).slice(2).toUpperCase()}`,
    });
    expect(judge(loud)).toBeUndefined();
    expect(await ask(loud)).toBeUndefined();
    for (const form of [
      ` ${signature}`,
      `${signature} `,
      `${signature}0`,
      upper.replace("0x", "0X"),
    ]) {
      expect(judge(await present(500n, { signature: form }))).toBe("malformed");
    }
  });

  it("a voucher of another key is refused by both", async () => {
    const { relayer } = devnet.accounts;
    const signature = await channels.signVoucher(config, 500n, relayer);
    const message = await present(500n, { signature });
    expect(judge(message)).toBe("invalid_batch_settlement_evm_voucher_signature");
    expect(await ask(message)).toBe("InvalidSignature");
  });

  it("a voucher for another receiver, authorizer, token, delay or salt than the offer's is refused", async () => {
    const other = toLowerHex(devnet.accounts.relayer.address);
    const cases = [
      [{ receiver: other }, "receiver_mismatch"],
      [{ receiverAuthorizer: other }, "receiver_authorizer_mismatch"],
      [{ token: other }, "token_mismatch"],
      [{ withdrawDelay: 901 }, "withdraw_delay_mismatch"],
      [{ withdrawDelay: 60 }, "withdraw_delay_mismatch"],
    ] as const;
    for (const [change, reason] of cases) {
      const channelId = channels.idOf({ ...config, ...change });
      const foreign = await present(500n, { config: change, channelId });
      expect(judge(foreign)).toBe(`invalid_batch_settlement_evm_${reason}`);
    }
    const salted = await present(500n, { config: { salt: toHex(9, { size: 32 }) } });
    expect(judge(salted)).toBe("invalid_batch_settlement_evm_channel_id_mismatch");
    expect(await ask(salted)).toBe("ClaimExceedsBalance");
  });

  it("a voucher for an id that is not its config's is refused, and one for another chain or contract is", async () => {
    const wrong = await present(500n, { channelId: toHex(7, { size: 32 }) });
    expect(judge(wrong)).toBe("invalid_batch_settlement_evm_channel_id_mismatch");
    const message = await present(500n);
    for (const place of [
      { network: networkOf(988) },
      { network: devnet.network, contract: channelContracts.erc3009Collector },
    ]) {
      expect(judge(message, createChannelDigests(place))).toBe(
        "invalid_batch_settlement_evm_channel_id_mismatch",
      );
    }
  });

  it("a voucher without a payerAuthorizer is refused: the payer's code could refuse its claim later", async () => {
    const change = { payerAuthorizer: zeroAddress } as const;
    const channelId = channels.idOf({ ...config, ...change });
    const message = await present(500n, { config: change, channelId });
    expect(judge(message)).toBe("payer_not_accepted");
  });

  it("a voucher for a signer with code is judged by its key, as the escrow does", async () => {
    const [signer] = devnet.accounts.others;
    if (signer === undefined) throw new Error("No other accounts.");
    await devnet.delegate(signer, await devnet.deploySmartAccount({ answer: "refuses" }));
    const hot = channels.configOf({ payerAuthorizer: toLowerHex(signer.address) });
    await channels.deposit(hot, 10n);
    const message = await present(5n, {
      config: hot,
      channelId: channels.idOf(hot),
      signature: await channels.signVoucher(hot, 5n, signer),
    });
    expect(judge(message)).toBeUndefined();
    expect(await ask(message)).toBeUndefined();
  });
});

describe("any voucher", () => {
  const anyByte = fc.integer({ min: 0, max: 255 });
  const twoDigits = (byte: number) => byte.toString(16).padStart(2, "0");

  /** Changes of a signature, which begin with the right one. */
  const anyChange = fc.oneof(
    fc.constant((digits: string) => digits),
    fc.tuple(fc.nat({ max: 64 }), anyByte).map(([place, byte]) => (digits: string) => {
      const at = 2 * place;
      return digits.slice(0, at) + twoDigits(byte) + digits.slice(at + 2);
    }),
    fc.nat({ max: 130 }).map((length) => (digits: string) => digits.slice(0, length)),
    fc.array(anyByte, { maxLength: 3 }).map((bytes) => (digits: string) => {
      return digits + bytes.map(twoDigits).join("");
    }),
    fc.constantFrom("1b", "1c", "00", "01", "1d").map((v) => (digits: string) => {
      return digits.slice(0, 128) + v;
    }),
    fc.boolean().map((turnsV) => (digits: string) => {
      const s = (curveOrder - BigInt(`0x${digits.slice(64, 128)}`)).toString(16).padStart(64, "0");
      const v = digits.endsWith("1b") === turnsV ? "1c" : "1b";
      return digits.slice(0, 64) + s + v;
    }),
    fc.uint8Array({ minLength: 65, maxLength: 65 }).map((bytes) => () => {
      return Buffer.from(bytes).toString("hex");
    }),
  );

  it("is accepted by us exactly if the escrow pays for it", async () => {
    const unchanged = (digits: string) => digits;
    // Right ones in every run: those that are drawn are right once in twenty.
    const examples = [1n, 2n, 1_000_000n, 2n ** 64n, 2n ** 127n, 2n ** 128n - 1n].map(
      (ceiling): [bigint, bigint, typeof unchanged, boolean, boolean] => {
        return [ceiling, 0n, unchanged, false, false];
      },
    );
    let accepted = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.bigInt({ min: 1n, max: 2n ** 128n - 1n }),
        // The ceiling that was signed, beside the one that is presented.
        fc.oneof(fc.constant(0n), fc.bigInt({ min: -2n, max: 2n })),
        anyChange,
        fc.boolean(),
        fc.boolean(),
        async (ceiling, difference, change, isLoud, isForged) => {
          const signed = ceiling + difference;
          fc.pre(signed > 0n && signed < 2n ** 128n);
          const { buyer, relayer } = devnet.accounts;
          const signer = isForged ? relayer : buyer;
          const digits = (await channels.signVoucher(config, signed, signer)).slice(2);
          const changed = change(digits);
          const signature = `0x${isLoud ? changed.toUpperCase() : changed}`;
          const message = await present(ceiling, { signature });
          const verdict = judge(message);
          // An odd digit makes no bytes: no call to the escrow can hold it.
          if (changed.length % 2 === 1) {
            expect(verdict).toBe("malformed");
            return;
          }
          if (verdict === undefined) accepted += 1;
          expect(verdict === undefined).toBe((await ask(message)) === undefined);
        },
      ),
      { numRuns: 200, examples },
    );
    expect(accepted).toBeGreaterThanOrEqual(examples.length);
  });
});
