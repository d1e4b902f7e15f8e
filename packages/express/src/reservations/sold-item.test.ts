import type { ReservationStore, SoldItem } from "@coinslot/protocol";
import supertest from "supertest";
import { afterEach, describe, expect, it } from "vitest";
import { createReservationStore } from "../index.ts";
import { createBuyer } from "../testing/buyer.ts";
import { openShop, option, type Shop } from "../testing/shop.ts";

let shop: Shop | undefined;

afterEach(async () => {
  await shop?.close();
  shop = undefined;
});

describe("the record of a payment", () => {
  it.each([
    [1, "x402v1"],
    [2, "x402v2"],
  ] as const)(
    "names route, resource without its query, and wire of a payment in version %i",
    async (version, wire) => {
      const sold: (SoldItem | undefined)[] = [];
      const store = createReservationStore();
      const reservations: ReservationStore = {
        ...store,
        reserve(request) {
          sold.push(request.sold);
          return store.reserve(request);
        },
      };
      shop = await openShop({
        routes: { "GET /weather/:city": { accepts: option() } },
        serve: (app) => app.get("/weather/:city", (_, response) => response.send("fine")),
        options: { reservations },
      });
      const url = `${shop.url}/weather/oslo?days=3`;
      const { headers } = await createBuyer().payFor(url, { version });
      await supertest(url).get("").set(headers).expect(200);
      expect(sold).toEqual([{ route: "GET /weather/:city", resource: "/weather/oslo", wire }]);
    },
  );
});
