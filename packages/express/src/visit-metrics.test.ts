import supertest from "supertest";
import { afterEach, expect, it } from "vitest";
import { visitMetrics } from "./index.ts";
import { createBuyer } from "./testing/buyer.ts";
import { openShop, option, type Shop } from "./testing/shop.ts";
import { writeVisitMetrics } from "./visit-metrics.ts";

const opened: Shop[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((shop) => shop.close()));
});

async function open() {
  const shop = await openShop({
    routes: { "GET /counted": { accepts: option() } },
    serve: (app) => app.use((_request, response) => void response.send("sold")),
  });
  opened.push(shop);
  return shop;
}

/** The samples of this file's route. The counts are those of the process, for all of its gates. */
const samples = () =>
  visitMetrics()
    .split("\n")
    .filter((line) => line.includes('route="GET /counted"'));

it("counts in the process where a facilitator keeps no counts, in the form of Prometheus", async () => {
  expect(writeVisitMetrics([])).toBe(
    [
      "# HELP coinslot_offers_total Requests without a payment that got an offer, by route",
      "# TYPE coinslot_offers_total counter",
      "# HELP coinslot_refusals_total Requests with a payment, or that could not be taken, which bought nothing, by reason",
      "# TYPE coinslot_refusals_total counter",
      "",
    ].join("\n"),
  );
  expect(samples()).toEqual([]);
  const { url } = await open();
  await supertest(url).get("/counted").expect(402);
  await supertest(url).get("/counted").expect(402);
  await supertest(url).get("/counted").set("payment-signature", "nonsense").expect(400);
  const cheap = await createBuyer().payFor(`${url}/counted`, { authorization: { value: 1n } });
  await supertest(url).get("/counted").set(cheap.headers).expect(402);
  expect(samples()).toEqual([
    'coinslot_offers_total{route="GET /counted"} 3',
    'coinslot_refusals_total{route="GET /counted",reason="invalid_payload",network="",asset=""} 1',
    expect.stringMatching(
      /^coinslot_refusals_total\{route="GET \/counted",reason="\w+",network="eip155:9745",asset="0x[0-9a-f]{40}"\} 1$/,
    ),
  ]);
});

it("escapes labels, which sellers write", () => {
  const tally = { reason: "offered", network: "", asset: "", total: 2, stored: 0 } as const;
  const text = writeVisitMetrics([{ ...tally, route: 'GET /a"b\\c\nd' }]);
  expect(text).toContain('\ncoinslot_offers_total{route="GET /a\\"b\\\\c\\nd"} 2\n');
});
