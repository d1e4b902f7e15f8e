import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ApiError } from "./api-error.ts";
import { type ReceivedEvent, readEvents } from "./client/read-events.ts";
import { encodeCsv } from "./csv.ts";
import { decodeCursor, encodeCursor } from "./cursor.ts";
import { encodeEvent } from "./event-stream/encode-event.ts";
import { generateKey, hashKey, isSameHash, readKey } from "./keys/api-key.ts";
import { callerNetwork } from "./limits/caller-network.ts";
import { operations } from "./operations.ts";
import { readQueryString } from "./query-string.ts";
import { readInput } from "./read-input.ts";
import { transferIn } from "./testing/transfers.ts";
import { readHistoryQuery, toRecord } from "./transfer-service.ts";
import { batchOf, toMilliseconds, transferQuery } from "./wire/transfer-query.ts";

/** Runs a parser: only an `ApiError` of 400 counts as a refusal. */
function refusesOr<Result>(action: () => Result, check: (result: Result) => void): void {
  let result: Result;
  try {
    result = action();
  } catch (error) {
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ status: 400 });
    return;
  }
  check(result);
}

const anyText = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.stringMatching(/^-?[0-9]{0,20}[.e-]?[0-9]*$/),
);

describe("caller input", () => {
  it("is read as a page in range, or refused, for any query string", () => {
    const names = fc.constantFrom(
      "limit",
      "fromTs",
      "toTs",
      "sort",
      "cursor",
      "other",
      "__proto__",
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(names, anyText)), (pairs) => {
        const search = new URLSearchParams(pairs);
        refusesOr(
          () =>
            readInput(operations.getTokenTransfers.query, readQueryString(`/x?${search}`), "query"),
          ({ limit, fromTs, toTs, sort }) => {
            expect(Number.isInteger(limit) && limit >= 1 && limit <= 1000).toBe(true);
            expect(Number.isSafeInteger(fromTs) && fromTs >= 0).toBe(true);
            expect(toTs === undefined || (Number.isSafeInteger(toTs) && toTs >= 0)).toBe(true);
            expect(["asc", "desc"]).toContain(sort);
          },
        );
      }),
    );
  });

  it("is read correctly where it is valid", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1000 }), fc.maxSafeNat(), (limit, fromTs) => {
        const read = readInput(
          operations.getTokenTransfers.query,
          readQueryString(`/x?limit=${limit}&fromTs=${fromTs}`),
          "query",
        );
        expect(read).toEqual({ limit, fromTs, sort: "desc" });
      }),
    );
  });

  it("is refused or harmless in any batch", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (body) => {
        refusesOr(
          () => readInput(batchOf(transferQuery), body, "body"),
          (items) => expect(items.length).toBeGreaterThan(0),
        );
      }),
    );
  });

  it("reaches the database only as a served name and an address in lower case", () => {
    const source = { chains: [{ name: "plasma", tokens: [{ name: "usdt" }] }] };
    const address = fc.oneof(fc.stringMatching(/^0[xX][0-9a-fA-F]{38,42}$/), anyText);
    const name = fc.oneof(fc.constantFrom("plasma", "usdt", "constructor", "__proto__"), anyText);
    fc.assert(
      fc.property(name, name, address, anyText, (blockchain, token, text, cursor) => {
        refusesOr(
          () => readHistoryQuery(source, { blockchain, token, address: text, cursor }),
          (query) => {
            expect(query).toMatchObject({ blockchain: "plasma", token: "usdt" });
            expect(query.address).toMatch(/^0x[0-9a-f]{40}$/);
            expect(query.address).toBe(text.toLowerCase());
          },
        );
      }),
    );
  });
});

describe("a timestamp", () => {
  it("is read as seconds below 10^11, and as milliseconds above", () => {
    expect(toMilliseconds(0)).toBe(0);
    expect(toMilliseconds(99_999_999_999)).toBe(99_999_999_999_000);
    expect(toMilliseconds(100_000_000_000)).toBe(100_000_000_000);
    fc.assert(
      fc.property(fc.integer({ min: 1_000_000_000, max: 10_000_000_000 }), (seconds) => {
        expect(toMilliseconds(seconds)).toBe(toMilliseconds(seconds * 1_000));
      }),
    );
  });
});

describe("a cursor", () => {
  const place = fc.record({
    blockNumber: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
    logIndex: fc.integer({ min: 0, max: 2 ** 21 - 1 }),
  });
  it("is read as it was written", () => {
    fc.assert(
      fc.property(place, (at) => {
        expect(decodeCursor(encodeCursor(at))).toEqual(at);
      }),
    );
  });
  it("is refused when the API did not write it", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        refusesOr(
          () => decodeCursor(text),
          (at) => expect(encodeCursor(at)).toBe(text),
        );
      }),
    );
  });
});

describe("an event stream", () => {
  const event = fc.record({
    id: fc.maxSafeNat(),
    event: fc.constantFrom("transfer" as const, "retraction" as const, "gap" as const),
    data: fc.jsonValue(),
  });

  it("yields its events, however the bytes are cut", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(event),
        fc.infiniteStream(fc.integer({ min: 1, max: 40 })),
        async (sent, sizes) => {
          const bytes = new TextEncoder().encode(sent.map(encodeEvent).join(""));
          async function* cut() {
            for (let at = 0; at < bytes.length; ) {
              const size: number = sizes.next().value;
              yield bytes.subarray(at, at + size);
              at += size;
            }
          }
          const received: ReceivedEvent[] = [];
          for await (const each of readEvents(cut())) received.push(each);
          expect(
            received.map(({ data, ...each }) => ({ ...each, data: JSON.parse(data) })),
          ).toEqual(
            sent.map(({ id, event: name, data }) => ({
              id: String(id),
              event: name,
              data: JSON.parse(JSON.stringify(data)),
            })),
          );
        },
      ),
    );
  });

  it("is read the same with any line ends", async () => {
    for (const end of ["\n", "\r\n", "\r"]) {
      const text = ["id: 1", "event: transfer", "data: {}", "", ": a comment", "", "id: 2", "", ""];
      for (let cut = 0; cut <= text.join(end).length; cut += 1) {
        const bytes = new TextEncoder().encode(text.join(end));
        async function* halves() {
          yield bytes.subarray(0, cut);
          yield bytes.subarray(cut);
          // The next byte of a stream decides whether a carriage return was a whole line end.
          yield new TextEncoder().encode(": end");
        }
        const received: ReceivedEvent[] = [];
        for await (const each of readEvents(halves())) received.push(each);
        expect(received).toEqual([
          { id: "1", event: "transfer", data: "{}" },
          { id: "2", event: "message", data: "" },
        ]);
      }
    }
  });

  it("is given up when its event never ends", async () => {
    async function* endless() {
      for (;;) yield new TextEncoder().encode("x".repeat(100_000));
    }
    await expect(readEvents(endless()).next()).rejects.toThrow(RangeError);
  });
});

describe("a CSV export", () => {
  it("has one line per transfer and one field per column, for any content", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "binary" })), (texts) => {
        const records = texts.map((token) => toRecord(transferIn(1, { token })));
        expect(parseCsv(encodeCsv(records)).map(([, token]) => token)).toEqual(texts);
      }),
    );
  });
});

/** A reader of RFC 4180, to test the writer with. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let rest = text;
  let row: string[] = [];
  while (rest !== "") {
    const [whole = "", quoted, plain, end] =
      /^(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/.exec(rest) ?? [];
    expect(whole).not.toBe("");
    row.push(quoted === undefined ? (plain ?? "") : quoted.replaceAll('""', '"'));
    if (end === "\r\n") {
      rows.push(row);
      row = [];
    }
    rest = rest.slice(whole.length);
  }
  return rows;
}

describe("an API key", () => {
  it("is recognised again, and no other text is taken for one", () => {
    const { id, key } = generateKey();
    expect(readKey(key)).toEqual({ id, key });
    expect(generateKey().key).not.toBe(key);
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(readKey(text)).toBeUndefined();
      }),
    );
  });

  it("has the same hash only with the same salt and text", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string(), (key, other, salt) => {
        expect(isSameHash(hashKey(key, salt), hashKey(key, salt))).toBe(true);
        fc.pre(key !== other);
        expect(isSameHash(hashKey(key, "a"), hashKey(other, "a"))).toBe(false);
        expect(isSameHash(hashKey(key, "a"), hashKey(key, "b"))).toBe(false);
      }),
    );
    expect(isSameHash("", hashKey("", ""))).toBe(false);
  });
});

describe("a caller's network", () => {
  it("is an IPv4 address, or the first half of an IPv6 address", () => {
    expect(callerNetwork("192.0.2.7")).toBe("192.0.2.7");
    expect(callerNetwork("::ffff:192.0.2.7")).toBe("192.0.2.7");
    expect(callerNetwork("2001:db8:1:2:3:4:5:6")).toBe("2001:db8:1:2::/64");
    expect(callerNetwork("2001:db8::1")).toBe("2001:db8:0:0::/64");
    expect(callerNetwork("2001:DB8:0001:0002::9")).toBe("2001:db8:1:2::/64");
    expect(callerNetwork("::1")).toBe("0:0:0:0::/64");
    expect(callerNetwork("fe80::1%eth0")).toBe("fe80:0:0:0::/64");
    expect(callerNetwork(undefined)).toBe("unknown");
    fc.assert(
      fc.property(fc.ipV6(), (address) => {
        expect(callerNetwork(address)).toMatch(/^[0-9a-f:.]+(::\/64)?$/);
      }),
    );
  });
});
