import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Challenge } from "./challenge.ts";
import { formatChallenge, parseChallenges, prepareChallenge } from "./challenge-header.ts";

const challenge: Challenge = {
  id: "an-id",
  realm: "api.example.com",
  method: "evm",
  intent: "charge",
  request: "e30",
};
const line = formatChallenge(challenge);

function readable(header: string): Challenge[] {
  return parseChallenges(header).flatMap((read) => (read.ok ? [read.challenge] : []));
}

describe("challenges of a header", () => {
  it.each([
    ["alone", line],
    ["with a scheme in any case", line.replace("Payment", "pAYMENT")],
    ["with names in any case", line.replace("realm", "Realm").replace("id=", "ID=")],
    ["with space round equals signs", line.replaceAll("=", " = ")],
    ["with tokens for quoted strings", line.replaceAll('"', "")],
    ["after another scheme", `Basic realm="a, b", ${line}`],
    ["before another scheme", `${line}, Bearer realm="z"`],
    ["beside a token68", `Negotiate abc==, ${line}, Negotiate`],
    ["beside empty elements", `, ,${line},, ,`],
    ["with an unknown parameter", `${line}, later="1"`],
  ])("are read %s", (_where, header) => {
    expect(readable(header)).toEqual([challenge]);
  });

  it("are read when several stand in one line", () => {
    const other = { ...challenge, id: "another" };
    expect(readable(`${line}, ${formatChallenge(other)}`)).toEqual([challenge, other]);
  });

  it.each([
    ["a repeated parameter", `${line}, id="again"`],
    ["an empty id", line.replace("an-id", "")],
    ["a method in capitals", line.replace("evm", "EVM")],
    ["no request", line.replace(/, request=.*/, "")],
    ["an instant without seconds", `${line}, expires="2099-01-01T00:00Z"`],
    ["an instant that is no date", `${line}, expires="2099-13-01T00:00:00Z"`],
    ["an open quotation", `${line}, realm="`],
    ["text after a value", line.replace('"an-id"', '"an-id"x')],
  ])("are refused one by one: %s", (_why, bad) => {
    const good = formatChallenge({ ...challenge, id: "good" });
    const reads = parseChallenges(`${good}, ${bad}`);
    expect(reads.map(({ ok }) => ok)).toEqual([true, false]);
    expect(readable(`${good}, ${bad}`)).toEqual([{ ...challenge, id: "good" }]);
  });

  it("pass over quoted text that looks like a challenge", () => {
    expect(readable(`Basic realm="x, ${line.replaceAll('"', '\\"')}"`)).toEqual([]);
  });

  it("are read back as they were written, whatever a member holds", () => {
    const text = fc.string({ unit: fc.constantFrom(...' !"#,/=\\abcZ09~'), maxLength: 40 });
    fc.assert(
      fc.property(text, text, (realm, description) => {
        const written = { ...challenge, realm, description };
        expect(readable(formatChallenge(written))).toEqual([written]);
      }),
    );
  });

  it("never throw, and take linear time, for any header", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(...'Payment id="\\,= x'), maxLength: 300 }),
        (header) => {
          parseChallenges(header);
        },
      ),
    );
    for (const part of ['"', "\\", "a ", "a=", 'Payment id="', "Payment ", ",", "a=b", "\t"]) {
      parseChallenges(part.repeat(65_536 / part.length));
    }
  });

  it("cannot hold a line break, or a character above ASCII", () => {
    for (const realm of ["a\r\nSet-Cookie: b", "a\0", "ä", "\u{1f600}"])
      expect(() => formatChallenge({ ...challenge, realm })).toThrow(RangeError);
  });

  it.each([{}, { header: "Payment-Authorization" }, { description: 'a "b" \\', digest: "d" }])(
    "are the same when prepared before their fresh members, with %j",
    (more) => {
      const { id: _id, ...same } = { ...challenge, ...more };
      const fresh = { id: "a_b-c", expires: "2099-01-01T00:00:00.5+01:00", opaque: "e30" };
      expect(prepareChallenge(same)(fresh)).toBe(formatChallenge({ ...same, ...fresh }));
    },
  );

  it.each(["id", "expires", "opaque"])("have no quotation in a fresh %s", (name) => {
    const write = prepareChallenge(challenge);
    const fresh = { id: "a", expires: "2099-01-01T00:00:00Z", opaque: "e30" };
    for (const bad of ['a", realm="b', "a\\", "a\r\nSet-Cookie: b", "a\n", "ä"])
      expect(() => write({ ...fresh, [name]: bad })).toThrow(RangeError);
  });
});
