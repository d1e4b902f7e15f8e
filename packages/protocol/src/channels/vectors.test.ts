import { readFileSync } from "node:fs";
import { hashTypedData, recoverTypedDataAddress } from "viem";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { addressSchema, bytes32Schema, toLowerHex } from "../money/address.ts";
import { paymentRequirementsSchema } from "../x402/payment-requirements.ts";
import { channelConfigSchema } from "./channel-config.ts";
import { channelTypeHashes } from "./channel-contracts.ts";
import { correctChannelOffer, readChannelOffer } from "./channel-offer.ts";
import { channelOperationSchema, channelPayloadSchema } from "./channel-payload.ts";
import { channelReceiptSchema, channelStateSchema, formatChannelReceipt } from "./channel-state.ts";
import {
  channelIdOf,
  channelRefundTypedData,
  claimBatchTypedData,
  depositTypedData,
  encodeCollectorData,
  voucherTypedData,
} from "./typed-data.ts";

const hex = z.templateLiteral(["0x", z.string()]);
const amount = z.string().transform(BigInt);
const exchange = z.object({
  status: z.number(),
  "PAYMENT-SIGNATURE": z
    .object({ payload: z.unknown(), accepted: paymentRequirementsSchema })
    .optional(),
  "PAYMENT-REQUIRED": z.object({ accepts: z.array(paymentRequirementsSchema) }).optional(),
  "PAYMENT-RESPONSE": z.object({ extra: z.unknown().optional() }).optional(),
});
const call = z.object({
  call: z.string(),
  payload: z.looseObject({ type: z.string() }),
  response: z.looseObject({ extra: z.unknown().optional() }),
});

/** Messages of the released packages of the reference, and what its contracts compute. */
const vectors = z
  .object({
    typehashes: z.record(z.string(), bytes32Schema),
    typedData: z.object({
      channelConfig: channelConfigSchema,
      channelId: bytes32Schema,
      secondChannelConfig: channelConfigSchema,
      secondChannelId: bytes32Schema,
      voucher: z.object({
        maxClaimableAmount: amount,
        digest: bytes32Schema,
        signature: hex,
        signer: addressSchema,
      }),
      refund: z.object({ nonce: amount, amount, digest: bytes32Schema }),
      claimBatch: z.object({
        claims: z.array(
          z.object({ channelId: bytes32Schema, maxClaimableAmount: amount, totalClaimed: amount }),
        ),
        digest: bytes32Schema,
      }),
      erc3009Deposit: z.object({
        amount,
        validAfter: amount,
        validBefore: amount,
        salt: bytes32Schema,
        nonce: bytes32Schema,
        digest: bytes32Schema,
        signature: hex,
        collectorData: hex,
      }),
    }),
    http: z.record(z.string(), z.unknown()),
    facilitator: z.record(z.string(), z.unknown()),
  })
  .parse(
    JSON.parse(readFileSync(new URL("../testing/channel-vectors.json", import.meta.url), "utf8")),
  );

const exchanges = Object.entries(vectors.http).flatMap(([name, value]) => {
  const parsed = exchange.safeParse(value);
  return parsed.success ? [{ name, ...parsed.data }] : [];
});
const calls = Object.values(vectors.facilitator).flatMap(
  (value) => z.array(call).safeParse(value).data ?? [],
);
const place = { network: "eip155:9745" } as const;
const { typedData } = vectors;

describe("the typed data of channels", () => {
  const { channelConfig, channelId } = typedData;

  it("gives the contract's type hashes, ids and digests", () => {
    expect(channelTypeHashes).toEqual(vectors.typehashes);
    expect(channelIdOf(channelConfig, place)).toBe(channelId);
    expect(channelIdOf(typedData.secondChannelConfig, place)).toBe(typedData.secondChannelId);
    const { voucher, refund, claimBatch } = typedData;
    const { maxClaimableAmount } = voucher;
    expect(hashTypedData(voucherTypedData({ channelId, maxClaimableAmount }, place))).toBe(
      voucher.digest,
    );
    const { nonce, amount } = refund;
    expect(hashTypedData(channelRefundTypedData({ channelId, nonce, amount }, place))).toBe(
      refund.digest,
    );
    expect(hashTypedData(claimBatchTypedData(claimBatch.claims, place))).toBe(claimBatch.digest);
  });

  it("gives another id on another chain, and for another contract", () => {
    const contract = `0x${"11".repeat(20)}` as const;
    expect(channelIdOf(channelConfig, { network: "eip155:988" })).not.toBe(channelId);
    expect(channelIdOf(channelConfig, { ...place, contract })).not.toBe(channelId);
  });

  it("names the voucher's signer", async () => {
    const { maxClaimableAmount, signature, signer } = typedData.voucher;
    const data = voucherTypedData({ channelId, maxClaimableAmount }, place);
    expect(await recoverTypedDataAddress({ ...data, signature })).toBe(signer);
  });

  it("binds a deposit to its channel", () => {
    const { digest, nonce, signature, collectorData, ...deposit } = typedData.erc3009Deposit;
    const data = depositTypedData({
      ...place,
      ...deposit,
      token: channelConfig.token,
      payer: channelConfig.payer,
      channelId,
      domain: { name: "USDT0", version: "1" },
    });
    expect(data.message.nonce).toBe(nonce);
    expect(hashTypedData(data)).toBe(digest);
    expect(encodeCollectorData({ ...deposit, signature })).toBe(collectorData);
  });
});

describe("the messages of the reference", () => {
  it("are all here", () => {
    expect(exchanges.map(({ name }) => name)).toEqual([
      "unpaid",
      "deposit",
      "voucher",
      "voucherChargedBelowTheMaximum",
      "overrideAboveTheMaximum",
      "answerThatTheClientNeverSaw",
      "correctiveAfterALostAnswer",
      "paidAfterTheCorrection",
      "channelBusy",
      "voucherAfterAClaim",
      "partialRefund",
      "topUp",
      "fullRefund",
    ]);
    expect(calls.map(({ payload }) => payload.type)).toEqual(
      expect.arrayContaining(["deposit", "claim", "settle", "refund"]),
    );
  });

  it.each(exchanges.filter((each) => each["PAYMENT-SIGNATURE"]))(
    "are read as payments: $name",
    ({ "PAYMENT-SIGNATURE": message }) => {
      const payload = channelPayloadSchema.parse(message?.payload);
      expect(payload.voucher.channelId).toBe(channelIdOf(payload.channelConfig, place));
      const offer = message && readChannelOffer(message.accepted);
      expect(offer).toMatchObject({
        amount: 1000n,
        receiver: payload.channelConfig.receiver,
        receiverAuthorizer: payload.channelConfig.receiverAuthorizer,
        token: payload.channelConfig.token,
        withdrawDelay: 900,
        minDeposit: 10_000n,
        transferMethod: "eip3009",
      });
    },
  );

  it("are read as a deposit by Permit2", () => {
    const { payload } = z
      .object({ payload: z.unknown() })
      .parse(vectors.http.permit2DepositPayloadOfTheClient);
    const read = channelPayloadSchema.parse(payload);
    expect(read.type === "deposit" && read.deposit.authorization).toMatchObject({
      permit2Authorization: { permitted: { amount: 10_000n } },
    });
  });

  it.each(exchanges.filter((each) => each["PAYMENT-RESPONSE"]?.extra))(
    "are read and written as receipts: $name",
    ({ "PAYMENT-RESPONSE": receipt }) => {
      const read = channelReceiptSchema.parse(receipt?.extra);
      expect(formatChannelReceipt(read)).toEqual(receipt?.extra);
    },
  );

  it("are read as a correction, and ours is theirs", () => {
    const { "PAYMENT-REQUIRED": required } =
      exchanges.find(({ name }) => name === "correctiveAfterALostAnswer") ?? {};
    const [theirs] = required?.accepts ?? [];
    if (theirs === undefined) throw new Error("No offer.");
    const { channelState, voucherState } = readChannelOffer(theirs) ?? {};
    expect(channelState).toMatchObject({ chargedCumulativeAmount: 3400n, totalClaimed: 0n });
    expect(voucherState).toMatchObject({ signedMaxClaimable: 3400n });
    if (channelState === undefined || voucherState === undefined) throw new Error("No state.");
    const { extra, ...terms } = theirs;
    const { channelState: _state, voucherState: _voucher, ...plain } = extra ?? {};
    const offer = { ...terms, extra: plain };
    expect(correctChannelOffer(offer, { channelState, voucherState })).toEqual(theirs);
    expect(correctChannelOffer(offer, { channelState }).extra).not.toHaveProperty("voucherState");
  });

  it.each(calls.filter(({ call, payload }) => call === "settle" && payload.type !== "deposit"))(
    "are read as operations: $payload.type",
    ({ payload }) => {
      expect(channelOperationSchema.parse(payload)).toMatchObject({ type: payload.type });
    },
  );

  it.each(calls.filter(({ call }) => call === "verify"))(
    "have the state that /verify returns: $payload.type",
    ({ response }) => {
      expect(channelStateSchema.parse(response.extra).chargedCumulativeAmount).toBeUndefined();
    },
  );
});

describe("an offer of channels", () => {
  const [theirs] =
    exchanges.find(({ name }) => name === "unpaid")?.["PAYMENT-REQUIRED"]?.accepts ?? [];
  if (theirs === undefined) throw new Error("No offer.");
  const change = (extra: Record<string, unknown>) =>
    readChannelOffer({ ...theirs, extra: { ...theirs.extra, ...extra } });

  it("is none where its terms fit no channel", () => {
    expect(readChannelOffer({ ...theirs, scheme: "exact" })).toBeUndefined();
    expect(readChannelOffer({ ...theirs, amount: `${2n ** 128n}` })).toBeUndefined();
    expect(readChannelOffer({ ...theirs, extra: undefined })).toBeUndefined();
    for (const withdrawDelay of [899, 2_592_001, 900.5, "900", undefined]) {
      expect(change({ withdrawDelay })).toBeUndefined();
    }
    expect(change({ receiverAuthorizer: `0x${"0".repeat(40)}` })).toBeUndefined();
    expect(change({ assetTransferMethod: "eip2612" })).toBeUndefined();
  });

  it("is none where another party manages its vouchers", () => {
    expect(change({ voucherManager: "facilitator" })).toBeUndefined();
    expect(change({ voucherManager: null })).toBeDefined();
  });
});

describe("a payload of a channel", () => {
  const parse = (change: (payload: Record<string, Record<string, unknown>>) => void) => {
    const found = exchanges.find(({ name }) => name === "deposit")?.["PAYMENT-SIGNATURE"];
    const payload = z
      .record(z.string(), z.record(z.string(), z.unknown()).catch({}))
      .parse(structuredClone(found?.payload));
    const copy = { ...payload };
    change(copy);
    return channelPayloadSchema.safeParse({ ...copy, type: "deposit" });
  };

  it.each(["-1", "1e3", "01", "+1", " 1", "1.0", "0x1", "", `${2n ** 128n}`, 1000, null])(
    "has no ceiling of %j",
    (maxClaimableAmount) => {
      const read = parse(({ voucher }) => Object.assign(voucher ?? {}, { maxClaimableAmount }));
      expect(read.success).toBe(false);
    },
  );

  it("has a ceiling of up to a uint128", () => {
    for (const ceiling of [0n, 1n, 2n ** 128n - 1n]) {
      const read = parse(({ voucher }) =>
        Object.assign(voucher ?? {}, { maxClaimableAmount: `${ceiling}` }),
      );
      expect(read.data?.voucher.maxClaimableAmount).toBe(ceiling);
    }
  });

  it("names one channel, whatever the letter case", () => {
    const read = parse(({ voucher }) => {
      const id = String(voucher?.channelId);
      Object.assign(voucher ?? {}, { channelId: `0x${id.slice(2).toUpperCase()}` });
    });
    expect(read.data?.voucher.channelId).toBe(typedData.channelId);
    expect(read.data?.channelConfig.payer).toBe(toLowerHex(typedData.channelConfig.payer));
  });

  it.each(["0x0", "0xzz", "0X12", "12", " 0x12", "0x12 ", `0x${"00".repeat(4097)}`])(
    "has no signature like %s",
    (signature) => {
      const read = parse(({ voucher }) => Object.assign(voucher ?? {}, { signature }));
      expect(read.success).toBe(false);
    },
  );

  it("has one authorization of its deposit, not two and not none", () => {
    const other = { permit2Authorization: {} };
    const both = parse(({ deposit }) => Object.assign(deposit?.authorization ?? {}, other));
    expect(both.success).toBe(false);
    expect(
      parse(({ deposit }) => Object.assign(deposit ?? {}, { authorization: {} })).success,
    ).toBe(false);
  });
});
