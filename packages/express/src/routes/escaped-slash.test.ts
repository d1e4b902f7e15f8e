import type { Listening } from "@coinslot/devnet";
import { afterEach, describe, expect, it } from "vitest";
import { expressVersions } from "../testing/express-versions.ts";
import { sendTarget } from "../testing/send-target.ts";
import { openShop, option } from "../testing/shop.ts";

const opened: Listening[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((listening) => listening.close()));
});

const content = "the content that is sold";

describe.each(expressVersions)("a key with an escaped slash on $name", ({ express }) => {
  it.each([
    ["GET /packages/@acme%2Ftool", false],
    ["GET /packages/%40acme%2ftool", true],
    ["GET /v1/packages/@acme%2ftool", true],
  ] as const)("is sold under every spelling: %s, case sensitive: %s", async (key, isSensitive) => {
    const base = key.includes("/v1") ? "/v1" : "";
    const shop = await openShop({
      express,
      routes: { [key]: { accepts: option() } },
      before: (app) => app.set("case sensitive routing", isSensitive),
      serve(app) {
        const router = express.Router({ caseSensitive: isSensitive });
        router.get("/packages/:name", (request, response) => {
          response.send(request.params.name === "@acme/tool" ? content : "free");
        });
        if (base === "") app.use(router);
        else app.use(base, router);
      },
    });
    opened.push(shop);
    for (const name of ["@acme%2Ftool", "@acme%2ftool", "%40acme%2ftool", "%40%61cme%2Ftoo%6C"]) {
      for (const start of ["", "/"]) {
        const { status, answer } = await sendTarget(shop, `${start}${base}/packages/${name}`);
        expect(answer).not.toContain(content);
        expect([402, 404]).toContain(status);
      }
      expect((await sendTarget(shop, `${base}/packages/${name}`)).status).toBe(402);
    }
    expect((await sendTarget(shop, `${base}/packages/@acme%2Fother`)).status).toBe(200);
  });
});
