import { describe, expect, test } from "vitest";
import { base64Of, samplePayloadV1, samplePayloadV2 } from "../testing/sample-messages.ts";
import { DecodeError, type DecodeFault } from "./decode-error.ts";
import { decodePaymentV1, decodePaymentV2, encodePaymentPayload } from "./payment-payload.ts";

const text = JSON.stringify(samplePayloadV1);

function faultOf(header: string): DecodeFault | "none" {
  try {
    decodePaymentV1(header);
    return "none";
  } catch (error) {
    if (error instanceof DecodeError) return error.fault;
    throw error;
  }
}

describe("a payment header", () => {
  test.each<[string, string]>([
    ["as it is written", base64Of(text)],
    ["without padding", base64Of(text).replace(/=+$/, "")],
    ["in the URL-safe alphabet", Buffer.from(text).toString("base64url")],
    ["with spaces around it", ` ${base64Of(text)}\t`],
    ["with spaces in its JSON", base64Of(JSON.stringify(samplePayloadV1, null, 2))],
    ["with unknown members", base64Of(text.replace("{", '{"surplus":[1,{}],'))],
  ])("is read %s", (_, header) => {
    expect(decodePaymentV1(header)).toEqual(samplePayloadV1);
  });

  test("is read with words in any script", () => {
    expect(decodePaymentV2(encodePaymentPayload(samplePayloadV2)).resource?.description).toBe(
      "Wetter für Zürich ☀️",
    );
  });

  test("is read with the last of two equal keys, as everywhere in JavaScript", () => {
    const header = base64Of(text.replace("{", '{"network":"eip155:1",'));
    expect(decodePaymentV1(header).network).toBe("eip155:9745");
    const repeated = base64Of(text.replace(/}$/, ',"network":"eip155:1"}'));
    expect(decodePaymentV1(repeated).network).toBe("eip155:1");
  });
});

describe("a malformed payment header", () => {
  const withMember = (member: string) => base64Of(text.replace("{", `{${member},`));
  test.each<[string, string, DecodeFault]>([
    ["when it is empty", "", "not_base64"],
    ["when it is blank", "   ", "not_base64"],
    ["when it is the JSON itself", text, "not_base64"],
    ["when a line is broken in it", base64Of(text).replace(/^.{8}/, "$&\n"), "not_base64"],
    ["when a NUL stands in it", base64Of(text).replace(/^.{8}/, "$&\0"), "not_base64"],
    ["when padding stands within", `${base64Of("{")}${base64Of(text)}`, "not_base64"],
    ["when one digit is left over", "YWJjZ", "not_base64"],
    [
      "when its bytes are not UTF-8",
      Buffer.from([0x22, 0xff, 0x22]).toString("base64"),
      "not_utf8",
    ],
    ["when it is cut off", base64Of(text.slice(0, -1)), "not_json"],
    ["when text follows", base64Of(`${text}}`), "not_json"],
    ["when a NUL ends its JSON", base64Of(`${text}\0`), "not_json"],
    ["when it is no object", base64Of("null"), "wrong_shape"],
    ["when it is an array", base64Of(`[${text}]`), "wrong_shape"],
    ["when a value has another type", base64Of(text.replace('"exact"', "1")), "wrong_shape"],
    ["when a number is no string", base64Of(text.replace('"10000"', "10000")), "wrong_shape"],
    ["when its version is text", base64Of(text.replace("1,", '"1",')), "wrong_shape"],
    ["when it is of version 2", encodePaymentPayload(samplePayloadV2), "wrong_shape"],
    ["when it is deep", withMember(`"a":${"[".repeat(40)}${"]".repeat(40)}`), "too_deep"],
    ["when a key is __proto__", withMember('"a":{"__proto__":{"success":true}}'), "unsafe_content"],
    ["when a key is constructor", withMember('"constructor":{"prototype":1}'), "unsafe_content"],
    ["when a text holds a NUL", withMember('"a":"\\u0000"'), "unsafe_content"],
    ["when a key holds a NUL", withMember('"\\u0000":1'), "unsafe_content"],
    ["when a surrogate stands alone", withMember('"a":["\\ud800"]'), "unsafe_content"],
    ["when a number is infinite", withMember('"a":1e400'), "unsafe_content"],
    ["when it is over 8 KB", base64Of(`{"a":"${"a".repeat(6200)}"}`), "too_large"],
  ])("is refused: %s", (_, header, fault) => {
    expect(faultOf(header)).toBe(fault);
  });

  test("is refused with the same message for the same fault, without the input", () => {
    const secret = "hunter2";
    const message = (header: string) => {
      try {
        return decodePaymentV1(header);
      } catch (error) {
        return String(error);
      }
    };
    const faulty = (nonce: string) => base64Of(text.replace(/0xf3+[f3]*/, nonce));
    expect(message(faulty(secret))).toBe(
      "DecodeError: The X-PAYMENT header does not have the right shape at payload.authorization.nonce",
    );
    expect(message(faulty("0x"))).toBe(message(faulty(secret)));
    expect(message(`${secret}!`)).toBe("DecodeError: The X-PAYMENT header is not base64");
  });
});

describe("a hostile header of the largest size", () => {
  const fill = (piece: string, size = 6140) =>
    base64Of(piece.repeat(Math.floor(size / piece.length)));
  test.each([
    ["equals signs", `${"=".repeat(8190)}A`],
    ["digits without end", "A".repeat(8192)],
    ["open brackets", fill("[")],
    ["open objects", fill('{"a":')],
    ["closed brackets", base64Of("[".repeat(3000) + "]".repeat(3000))],
    ["many keys", base64Of(`{${Array.from({ length: 700 }, (_, i) => `"k${i}":0`).join()}}`)],
    ["a number of thousands of digits", base64Of(text.replace('"10000"', "9".repeat(5000)))],
    [
      "an amount of thousands of digits",
      base64Of(text.replace('"10000"', `"${"9".repeat(5000)}"`)),
    ],
    ["a signature one digit short", base64Of(text.replace(/0x(ab)+1b/, `0x${"a".repeat(5001)}`))],
    ["an address without end", base64Of(text.replace(/0x857b/, `0x${"8".repeat(5000)}`))],
    ["zeros before a bad digit", base64Of(text.replace(/0xf3/, `0x${"0".repeat(5000)}g`))],
    ["a megabyte", "A".repeat(1_000_000)],
    ["a megabyte of spaces", " ".repeat(1_000_000)],
  ])("is decided quickly: %s", (_, header) => {
    const elapsed = Array.from({ length: 3 }, () => {
      const start = performance.now();
      expect(() => decodePaymentV1(header)).toThrow(DecodeError);
      return performance.now() - start;
    });
    // The quickest of three, since other work shares this processor.
    expect(Math.min(...elapsed)).toBeLessThan(20);
  });
});
