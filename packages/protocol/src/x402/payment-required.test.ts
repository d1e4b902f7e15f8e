import { describe, expect, test } from "vitest";
import { base64Of, samplePaymentRequired, sampleRequirements } from "../testing/sample-messages.ts";
import { DecodeError } from "./decode-error.ts";
import {
  decodePaymentRequired,
  encodePaymentRequired,
  parsePaymentRequiredV1,
} from "./payment-required.ts";
import { toPaymentRequirementsV1 } from "./payment-requirements.ts";

const entryV1 = toPaymentRequirementsV1({
  requirements: sampleRequirements,
  resource: samplePaymentRequired.resource,
});

describe("an offer of version 2", () => {
  test("keeps unknown members, since a payment repeats its entry", () => {
    const entry = { ...sampleRequirements, surplus: { of: "a later version" } };
    const offer = decodePaymentRequired(
      encodePaymentRequired({ ...samplePaymentRequired, accepts: [entry] }),
    );
    expect(offer.accepts).toEqual([
      { x402Version: 2, requirements: sampleRequirements, accepted: entry },
    ]);
  });

  test("drops unreadable entries and keeps the others", () => {
    const message = {
      ...samplePaymentRequired,
      accepts: [
        { scheme: "exact", network: "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp", amount: "1" },
        null,
        sampleRequirements,
        { ...sampleRequirements, amount: "1e4" },
      ],
    };
    const offer = decodePaymentRequired(base64Of(JSON.stringify(message)));
    expect(offer.accepts.map(({ requirements }) => requirements)).toEqual([sampleRequirements]);
  });

  test("accepts null for absent members, and a long description", () => {
    const message = {
      x402Version: 2,
      error: "no ".repeat(1000),
      resource: { url: "https://seller.example/", description: null, mimeType: null },
      accepts: [{ ...sampleRequirements, extra: null }],
      extensions: null,
    };
    const offer = decodePaymentRequired(base64Of(JSON.stringify(message)));
    const { extra: _, ...requirements } = sampleRequirements;
    expect(offer.accepts).toEqual([
      { x402Version: 2, requirements, accepted: { ...requirements, extra: null } },
    ]);
    expect(offer.resource).toEqual({ url: "https://seller.example/" });
    expect(offer.error).toHaveLength(1024);
    expect(offer.extensions).toBeUndefined();
  });

  test("accepts a JSON Schema of up to 16 KB in its extensions", () => {
    const schema = (depth: number): unknown =>
      depth === 0 ? { type: "string" } : { type: "object", properties: { a: schema(depth - 1) } };
    const described = { ...samplePaymentRequired, extensions: { bazaar: { schema: schema(10) } } };
    expect(decodePaymentRequired(encodePaymentRequired(described)).extensions).toEqual(
      described.extensions,
    );
    const bloated = { ...samplePaymentRequired, extensions: { bloat: "a".repeat(13_000) } };
    expect(() => decodePaymentRequired(encodePaymentRequired(bloated))).toThrow(DecodeError);
  });
});

describe("an offer of version 1", () => {
  test("names its networks either way, and drops unknown ones", () => {
    const names = ["eip155:8453", "base", "unheard-of", "solana"];
    const accepts = names.map((network) => ({ ...entryV1, network }));
    const offer = parsePaymentRequiredV1({ x402Version: 1, error: "pay", accepts });
    expect(offer.accepts.map((entry) => entry.x402Version === 1 && entry.networkName)).toEqual([
      "eip155:8453",
      "base",
    ]);
    expect(offer.accepts.map(({ requirements }) => requirements.network)).toEqual([
      "eip155:8453",
      "eip155:8453",
    ]);
  });

  test("is read with the protocol's required members alone", () => {
    const { scheme, network, maxAmountRequired, asset, resource, payTo } = entryV1;
    const accepts = [{ scheme, network, maxAmountRequired, asset, resource, payTo }];
    const { extra: _, ...requirements } = sampleRequirements;
    expect(parsePaymentRequiredV1({ x402Version: 1, accepts })).toEqual({
      x402Version: 1,
      error: undefined,
      resource: { url: resource },
      accepts: [{ x402Version: 1, requirements, networkName: network, resourceUrl: resource }],
    });
  });

  test.each([null, [], {}, { x402Version: 2, accepts: [] }, { x402Version: 1 }, "text"])(
    "is refused as %j",
    (body) => {
      expect(() => parsePaymentRequiredV1(body)).toThrow(DecodeError);
    },
  );
});
