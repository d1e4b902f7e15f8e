import { expect, it } from "vitest";
import { currencyOf } from "./currency.ts";
import { csvFormat } from "./export-csv.ts";
import { beancountFormat, componentOf, ledgerFormat } from "./journal.ts";
import type { Movement } from "./movement.ts";

const network = "eip155:9745";
const asset = "0xb8ce59fc3717ada4c02eadf9682a9e934f625ebb";
const time = Date.parse("2026-11-05T10:00:00Z");
const sale: Movement = {
  ...{ kind: "payment", isReversal: false, debit: "wallet", credit: "income", amount: 1_500n },
  ...{ time, count: 2, network, currency: { network, asset }, route: "GET /weather" },
};
const gas: Movement = {
  ...{ kind: "gas", isReversal: false, debit: "gas", credit: "relayers" },
  ...{ amount: 123_000_000_000_000n, time, count: 1, network, route: undefined },
  currency: { network, asset: undefined },
};
const rates = new Map([["XPL", "0.25"]]);
const codes = { sale: currencyOf(network, asset), gas: currencyOf(network, undefined) };
/** Ends a string, a line or a posting, and begins another. */
const hostile = 'GET /"\n2026-01-01 open Assets:Mine ; \u202e=1+1\\';

it("a beancount transaction opens its accounts once, and prices gas", () => {
  const format = beancountFormat(rates, time);
  const route = componentOf("GET /weather");
  expect(format.write(sale, codes.sale)).toBe(`1970-01-01 open Assets:Coinslot:Wallet:Eip155-9745
1970-01-01 open Income:Coinslot:Eip155-9745:${route}
2026-11-05 * "Coinslot" "2 payments, GET /weather"
  Assets:Coinslot:Wallet:Eip155-9745  0.0015 USDT0
  Income:Coinslot:Eip155-9745:${route}  -0.0015 USDT0

`);
  expect(format.write({ ...sale, isReversal: true }, codes.sale)).toMatch(
    /^2026-11-05 \* "Coinslot" "reversal of 2 payments/,
  );
  expect(format.write(gas, codes.gas)).toContain(
    "Relayers:Eip155-9745  -0.000123 XPL @ 0.25 USD\n",
  );
});

it("a ledger transaction quotes its commodity", () => {
  const text = ledgerFormat(rates, time).write(sale, codes.sale);
  expect(text).toMatch(/^2026\/11\/05 \* Coinslot, 2 payments, GET \/weather\n/);
  expect(text).toContain('    Assets:Coinslot:Wallet:Eip155-9745  0.0015 "USDT0"\n');
});

it("the text of a route adds no line, string or account", () => {
  const written = { ...sale, route: hostile };
  const bean = beancountFormat(rates, time).write(written, codes.sale);
  const [, , heading = "", ...lines] = bean.trimEnd().split("\n");
  expect(heading).toMatch(/^2026-11-05 \* "Coinslot" "(?:[^"\\\n]|\\["\\])*"$/);
  expect(lines).toHaveLength(2);
  const ledger = ledgerFormat(rates, time).write(written, codes.sale).trimEnd().split("\n");
  expect(ledger).toHaveLength(3);
  expect(ledger[0]).not.toContain(";");
  const cells = csvFormat(rates, ["route"]).write({ ...written, route: "=1+1" }, codes.sale);
  expect(cells).toMatch(/^"?'=1\+1/);
});

it("a part of an account name is legal, and differs where the route does", () => {
  const routes = [hostile, "", "GET /ä", "get /a-b", "get /a/b", "a".repeat(500), "-", "0"];
  for (const route of routes) expect(componentOf(route)).toMatch(/^[A-Z0-9][A-Za-z0-9-]*$/);
  expect(new Set(routes.map(componentOf)).size).toBe(routes.length);
});

it("dollars of gas are exact", () => {
  const format = csvFormat(rates, ["day"]);
  expect(format.begin).toBe("day,movement,debit,credit,amount,currency,usd,count\r\n");
  expect(format.write(gas, codes.gas)).toBe(
    "2026-11-05,gas,gas,relayers,0.000123,XPL,0.00003075,1\r\n",
  );
});

it("an unknown token is counted in its smallest unit, under a legal code", () => {
  const code = /^[A-Z][A-Z0-9-]{0,22}[A-Z0-9]$/;
  const unknown = currencyOf("eip155:77777", `0x${"ab".repeat(20)}`);
  expect(unknown).toEqual({ code: "UNITS-ABABABABABAB", decimals: 0 });
  expect(currencyOf("eip155:77777", undefined)).toEqual({ code: "NATIVE-77777", decimals: 18 });
  for (const each of [unknown, codes.sale, codes.gas]) expect(each.code).toMatch(code);
});
