import type { Listening } from "@coinslot/devnet";
import supertest from "supertest";
import { afterEach, describe, expect, it } from "vitest";
import type { PaymentRoutes } from "../index.ts";
import { expressVersions } from "../testing/express-versions.ts";
import { openShop, option } from "../testing/shop.ts";

const opened: Listening[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((listening) => listening.close()));
});

describe.each(expressVersions)("on $name, a key for GET", ({ express }) => {
  async function open(routes: PaymentRoutes) {
    const shop = await openShop({
      express,
      routes,
      serve(app) {
        app.all("/x", (_request, response) => void response.send("content"));
        const router = express.Router();
        router.all("/:id", (_request, response) => void response.send("content"));
        app.use("/nested", router);
        app.get("/y", (_request, response) => void response.send("content"));
        app.post("/y", (_request, response) => void response.send("stored"));
      },
    });
    opened.push(shop);
    const post = async (path: string) => (await supertest(shop.url).post(path)).status;
    return { ...shop, post };
  }

  it("leaves POST free beside a handler for all methods, with one warning", async () => {
    const shop = await open({
      "GET /x": { accepts: option() },
      "GET /nested/:id": { accepts: option() },
    });
    await supertest(shop.url).get("/x").expect(402);
    expect(shop.errors).toEqual([]);
    const statuses = [await shop.post("/x"), await shop.post("/x"), await shop.post("/nested/1")];
    expect(statuses).toEqual([200, 200, 200]);
    await expect.poll(() => shop.errors).toHaveLength(2);
    expect(String(shop.errors[0])).toContain('"GET /x" does not sell POST');
    expect(String(shop.errors[0])).toContain('sell "* /x"');
    expect(String(shop.errors[1])).toContain('"GET /nested/:id" does not sell POST');
  });

  it("causes no warning beside a handler of its own for POST", async () => {
    const shop = await open({ "GET /y": { accepts: option() }, "* /x": { accepts: option() } });
    expect([await shop.post("/y"), await shop.post("/x")]).toEqual([200, 402]);
    expect(shop.errors).toEqual([]);
  });

  it("causes no warning for an odd or a long path, which takes long to match", async () => {
    const shop = await open({ "GET /nested/:id": { accepts: option() } });
    for (const name of ["%41", "a".repeat(100)]) {
      await supertest(shop.url).put(`/nested/${name}`).expect(200);
    }
    expect(await shop.post(`/nested/a?${"b".repeat(100)}`)).toBe(200);
    await expect.poll(() => shop.errors.map(String)).toEqual([expect.stringContaining("POST")]);
  });
});
