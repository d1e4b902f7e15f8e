import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readFacilitatorRequest } from "../facilitator/facilitator-request.ts";
import {
  authorization,
  payloadV1,
  payloadV2,
  paymentRequired,
  receipt,
  requirements,
  resource,
} from "../testing/arbitrary-messages.ts";
import {
  base64Of,
  samplePayloadV1,
  samplePayloadV2,
  samplePaymentRequired,
  sampleReceipt,
  sampleRequirements,
} from "../testing/sample-messages.ts";
import { formatAuthorization, parseAuthorization } from "./authorization.ts";
import { DecodeError } from "./decode-error.ts";
import { readPayment } from "./payment.ts";
import { decodePaymentV1, decodePaymentV2, encodePaymentPayload } from "./payment-payload.ts";
import {
  decodePaymentRequired,
  encodePaymentRequired,
  parsePaymentRequiredV1,
} from "./payment-required.ts";
import { fromPaymentRequirementsV1, toPaymentRequirementsV1 } from "./payment-requirements.ts";
import { decodeReceipt, encodeReceipt } from "./settle-response.ts";

describe("decoding", () => {
  test("undoes the encoding of X-PAYMENT", () => {
    fc.assert(
      fc.property(payloadV1, (payload) => {
        expect(decodePaymentV1(encodePaymentPayload(payload))).toEqual(payload);
      }),
    );
  });

  test("undoes the encoding of PAYMENT-SIGNATURE", () => {
    fc.assert(
      fc.property(payloadV2, (payload) => {
        expect(decodePaymentV2(encodePaymentPayload(payload))).toEqual(payload);
      }),
    );
  });

  test("undoes the encoding of PAYMENT-REQUIRED", () => {
    fc.assert(
      fc.property(paymentRequired, (message) => {
        const { accepts, ...rest } = message;
        const offer = decodePaymentRequired(encodePaymentRequired(message));
        expect(offer).toEqual({
          ...rest,
          accepts: accepts.map((entry) => ({
            x402Version: 2,
            requirements: entry,
            accepted: entry,
          })),
        });
      }),
    );
  });

  test("undoes the encoding of PAYMENT-RESPONSE, and of X-PAYMENT-RESPONSE with the members of version 1", () => {
    fc.assert(
      fc.property(receipt, (settled) => {
        expect(decodeReceipt(encodeReceipt(settled, 2))).toEqual(settled);
        const { errorMessage: _, amount: __, extensions: ___, ...membersOfV1 } = settled;
        expect(decodeReceipt(encodeReceipt(settled, 1))).toEqual(membersOfV1);
      }),
    );
  });

  test("undoes the encoding of requirements of version 1", () => {
    fc.assert(
      fc.property(requirements, resource, (entry, sold) => {
        const v1 = toPaymentRequirementsV1({ requirements: entry, resource: sold });
        expect(fromPaymentRequirementsV1(v1)).toEqual(entry);
        const body = JSON.parse(JSON.stringify({ x402Version: 1, error: "", accepts: [v1] }));
        expect(parsePaymentRequiredV1(body).accepts).toEqual([
          {
            x402Version: 1,
            requirements: entry,
            networkName: entry.network,
            resourceUrl: sold.url,
          },
        ]);
      }),
    );
  });

  test("undoes the encoding of an authorization", () => {
    fc.assert(
      fc.property(authorization, (signed) => {
        expect(parseAuthorization(formatAuthorization(signed))).toEqual(signed);
      }),
    );
  });

  test("undoes base64 without padding or in the URL-safe alphabet", () => {
    fc.assert(
      fc.property(payloadV2, (payload) => {
        const header = encodePaymentPayload(payload);
        const urlSafe = header.replaceAll("+", "-").replaceAll("/", "_");
        for (const variant of [header.replace(/=+$/, ""), urlSafe, urlSafe.replace(/=+$/, "")]) {
          expect(decodePaymentV2(variant)).toEqual(payload);
        }
      }),
    );
  });
});

const headerDecoders = { decodePaymentV1, decodePaymentV2, decodePaymentRequired, decodeReceipt };
const reservedKey = fc.constantFrom("__proto__", "constructor", "prototype", "toString", "");
/** Any JSON text, reserved and repeated keys, strange characters and huge numbers included. */
const { json: jsonText } = fc.letrec<{ json: string; member: string }>((tie) => ({
  json: fc.oneof(
    { depthSize: "small" },
    fc.string({ unit: "binary" }).map((text) => JSON.stringify(text)),
    fc.constantFrom(
      "null",
      "true",
      "0",
      "-0",
      "1",
      "2",
      "1e400",
      "9".repeat(90),
      '"\\u0000"',
      '"\\ud800"',
    ),
    fc.array(tie("json"), { maxLength: 4 }).map((items) => `[${items.join()}]`),
    fc.array(tie("member"), { maxLength: 5 }).map((members) => `{${members.join()}}`),
  ),
  member: fc
    .tuple(
      fc.oneof(
        reservedKey,
        fc.constantFrom("x402Version", "payload", "accepts", "extra"),
        fc.string(),
      ),
      tie("json"),
    )
    .map(([key, value]) => `${JSON.stringify(key)}:${value}`),
}));

/** A valid message with one of its values, at any depth, replaced by any JSON text. */
const mutatedText = fc
  .constantFrom(samplePayloadV1, samplePayloadV2, samplePaymentRequired, sampleReceipt)
  .chain((message) => {
    const text = JSON.stringify(message);
    const values = [...text.matchAll(/(?<=:)(?:"[^"]*"|[0-9]+|true)/g)];
    return fc.tuple(fc.constantFrom(...values), jsonText).map(([value, replacement]) => {
      const end = value.index + value[0].length;
      return text.slice(0, value.index) + replacement + text.slice(end);
    });
  });

const header = fc.oneof(
  fc.string({ unit: "binary", maxLength: 400 }),
  fc.base64String({ maxLength: 400 }),
  fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes).toString("base64")),
  jsonText.map(base64Of),
  mutatedText.map(base64Of),
  fc
    .tuple(mutatedText, fc.nat(), fc.string({ unit: "binary", maxLength: 2 }))
    .map(([text, at, inserted]) => {
      const encoded = base64Of(text);
      const position = at % encoded.length;
      return encoded.slice(0, position) + inserted + encoded.slice(position + 1);
    }),
);

describe("no input makes a decoder slow, pollute an object, or throw another error than DecodeError", () => {
  for (const [name, decode] of Object.entries(headerDecoders)) {
    test(name, () => {
      fc.assert(
        fc.property(header, (value) => expectTame(() => decode(value))),
        { numRuns: 1000 },
      );
    });
  }

  test("no input makes a decoder slow, pollute an object, or throw another error than DecodeError in parsePaymentRequiredV1", () => {
    fc.assert(
      fc.property(fc.oneof(jsonText, mutatedText), (text) =>
        expectTame(() => parsePaymentRequiredV1(JSON.parse(text))),
      ),
      { numRuns: 1000 },
    );
  });

  test("no input makes a decoder slow, pollute an object, or throw another error than DecodeError in readFacilitatorRequest, and its result can be parsed further", () => {
    const part = fc.oneof(
      jsonText,
      mutatedText,
      fc.constant(JSON.stringify(samplePayloadV1)),
      fc.constant(JSON.stringify(sampleRequirements)),
    );
    fc.assert(
      fc.property(jsonText, part, part, (version, payload, required) => {
        const body: unknown = JSON.parse(
          `{"x402Version":${version},"paymentPayload":${payload},"paymentRequirements":${required}}`,
        );
        const read = readFacilitatorRequest(body);
        if (read.ok) readPayment(read.request.paymentPayload, read.request.paymentRequirements);
      }),
      { numRuns: 1000 },
    );
  });
});

function expectTame(decode: () => unknown): void {
  const start = performance.now();
  try {
    expect(ownKeysOf(decode())).not.toContain("__proto__");
  } catch (error) {
    expect(error).toBeInstanceOf(DecodeError);
  }
  expect(performance.now() - start).toBeLessThan(1000);
  expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(namesOfObjectPrototype);
}

const namesOfObjectPrototype = Object.getOwnPropertyNames(Object.prototype);

function ownKeysOf(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, child]) => [key, ...ownKeysOf(child)]);
}
