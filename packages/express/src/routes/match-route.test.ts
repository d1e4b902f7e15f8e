import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Listening, listen } from "@coinslot/devnet";
import type { Express } from "express";
import supertest from "supertest";
import { afterEach, describe, expect, it } from "vitest";
import { type PaymentRoutes, paymentMiddleware } from "../index.ts";
import { createBuyer } from "../testing/buyer.ts";
import { expressVersions } from "../testing/express-versions.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";
import { sendTarget } from "../testing/send-target.ts";
import { openShop, option } from "../testing/shop.ts";
import { dialectOf } from "./path-dialect.ts";

const opened: Listening[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((listening) => listening.close()));
});

const content = "the content that is sold";

describe.each(expressVersions)("the route matcher on $name", ({ express }) => {
  async function open(
    routes: PaymentRoutes,
    serve: (app: Express) => void,
    before?: (app: Express) => void,
  ) {
    const shop = await openShop({ express, routes, serve, before });
    opened.push(shop);
    return shop;
  }

  it.each([
    "/PAID",
    "/paid/",
    "//paid",
    "/paid//",
    "/%70aid",
    "/%50%41ID",
    "/x/../paid",
    "/x/%2e%2e/paid",
    "/./paid",
    "/paid?x=1",
    "/paid#x",
    "/paid;a=b",
    "/paid%3Fx",
    "/paid%00",
    "/\\paid",
    "http://shop/paid",
    "http://other/PAID/",
    "HTTP://shop/paid",
    "http:/paid",
    "http://shop#/paid",
    "//shop/paid",
  ])("sells %s, which Express routes to GET /paid", async (target) => {
    const shop = await open({ "GET /paid": { accepts: option() } }, (app) => {
      app.get("/paid", (_request, response) => void response.send(content));
    });
    for (const method of ["GET", "HEAD"]) {
      const { status, answer } = await sendTarget(shop, target, { method });
      expect([400, 402, 404]).toContain(status);
      expect(answer).not.toContain(content);
    }
  });

  it("sells HEAD as GET, and ignores other methods", async () => {
    const shop = await open({ "GET /paid": { accepts: option() } }, (app) => {
      app.all("/paid", (_request, response) => void response.send("served"));
    });
    await supertest(shop.url).head("/paid").expect(402);
    await supertest(shop.url).delete("/paid").expect(200);
  });

  it("sells a method in lower case from other middleware as Express routes it", async () => {
    const shop = await open(
      { "GET /paid": { accepts: option() } },
      (app) => app.get("/paid", (_request, response) => void response.send(content)),
      (app) =>
        app.use((request, _response, next) => {
          request.method = String(request.query.method);
          next();
        }),
    );
    for (const method of ["get", "Get", "head", "GET"]) {
      await supertest(shop.url).post(`/paid?method=${method}`).expect(402);
    }
  });

  it.each(["* /paid", "/paid"] as const)("sells all methods for %s", async (key) => {
    const shop = await open({ [key]: { accepts: option() } }, (app) => {
      app.all("/paid", (_request, response) => void response.send(content));
    });
    for (const method of ["get", "post", "delete", "patch", "options"] as const) {
      await supertest(shop.url)[method]("/paid").expect(402);
    }
  });

  it.each([
    // Express cuts the mount off the original target, by the length of its rewritten form. The
    // brace grows by two characters, which are then missing, and the router sees /items/seven.
    ["http://shop/v/{one/a/items/seven", "/v/:version", "/items/:id"],
    // An invalid port is moved to the front of the path, and stays there when the mount is cut off.
    ["http://shop:v/a//items/seven", "/:version", "/:port/items/:id"],
  ])(
    "corrects %s, which Express itself misreads in a mounted router",
    async (target, mount, path) => {
      const serve = (app: Express) => {
        const router = express.Router();
        router.get(path, (_request, response) => void response.send(content));
        app.use(mount, router);
      };
      const bareApp = express();
      serve(bareApp);
      const bare = await listen(bareApp);
      opened.push(bare);
      expect((await sendTarget(bare, target)).answer).toContain(content);
      const shop = await open({ [`GET ${mount}${path}`]: { accepts: option() } }, serve);
      const { status, answer } = await sendTarget(shop, target);
      expect(status).toBe(400);
      expect(answer).not.toContain(content);
    },
  );

  it.each([
    ["in front, by its full path", "GET /api/v1/paid", "app"],
    ["on the outer router, by its full path", "GET /api/v1/paid", "outer"],
    ["on the outer router, by the path relative to it", "GET /v1/paid", "outer"],
    ["on the inner router, by its full path", "GET /api/v1/paid", "inner"],
    ["on the inner router, by the path relative to it", "GET /paid", "inner"],
  ] as const)("sells a route in nested routers %s", async (_case, key, where) => {
    const gate = paymentMiddleware({ [key]: { accepts: option() } }, createPaperFacilitator());
    const app = express();
    const outer = express.Router();
    const inner = express.Router();
    if (where === "app") app.use(gate);
    if (where === "outer") outer.use(gate);
    if (where === "inner") inner.use(gate);
    inner.get("/paid", (_request, response) => void response.send(content));
    inner.get("/free", (_request, response) => void response.send("free"));
    outer.use("/v1", inner);
    app.use("/api", outer);
    await gate.ready();
    const shop = await listen(app);
    opened.push(shop);
    await supertest(shop.url).get("/api/v1/paid").expect(402);
    expect((await sendTarget(shop, "/API/v1//paid/")).status).not.toBe(200);
    await supertest(shop.url).get("/api/v1/free").expect(200, "free");
    const { headers } = await createBuyer().payFor(`${shop.url}/api/v1/paid`);
    await supertest(shop.url).get("/api/v1/paid").set(headers).expect(200, content);
  });

  it("takes the first matching key", async () => {
    const shop = await open(
      {
        "GET /items/rare": { accepts: option({ price: "$5" }) },
        "GET /items/:id": { accepts: option({ price: "$1" }) },
      },
      () => undefined,
    );
    const amountOf = async (target: string) =>
      /"maxAmountRequired":"(\d+)"/.exec((await sendTarget(shop, target)).answer)?.[1];
    expect(await amountOf("/items/rare")).toBe("5000000");
    expect(await amountOf("/items/other")).toBe("1000000");
    // No discount for another spelling of the path.
    expect(await amountOf("/items/%72are")).toBe("5000000");
  });

  it("sells files behind a static server under every spelling of their path", async () => {
    const folder = await mkdtemp(join(tmpdir(), "static-"));
    try {
      await writeFile(join(folder, "report.txt"), content);
      await writeFile(join(folder, "two words.txt"), content);
      await writeFile(join(folder, "index.html"), content);
      const shop = await open(
        {
          "GET /files/": { accepts: option() },
          "GET /files/index.html": { accepts: option() },
          "GET /files/report.txt": { accepts: option() },
          "GET /files/two%20words.txt": { accepts: option() },
        },
        (app) => app.use("/files", express.static(folder)),
      );
      for (const target of [
        "/files/",
        "/files//",
        "/files/.",
        "/files/index.html",
        "/files/report.txt",
        "/files/%72eport.txt",
        "/files//report.txt",
        "/files/./report.txt",
        "/files/x/../report.txt",
        "/files/report%2Etxt",
        "/files%2Freport.txt",
        "/files/%2Freport.txt",
        "/files/two%20words.txt",
        "/files/%74wo%20words.txt",
      ]) {
        const { status, answer } = await sendTarget(shop, target);
        expect([402, 404]).toContain(status);
        expect(answer).not.toContain(content);
      }
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("sells files behind a static server with any escapes in key and request", async () => {
    const names = [
      "a+b",
      "[1]",
      "{x}",
      "12:00",
      "c&d",
      "(e)",
      "q'r",
      "$5!",
      "ä b",
      "100%",
      "*",
      "a\\b",
    ];
    const escapeAll = (name: string) =>
      Buffer.from(name, "utf8").toString("hex").replace(/../g, "%$&");
    const folder = await mkdtemp(join(tmpdir(), "static-"));
    try {
      for (const name of names) await writeFile(join(folder, name), content);
      const escapeMost = (name: string) => encodeURIComponent(name).replace(/[!'()*]/g, escapeAll);
      for (const escapeKey of [escapeMost, escapeAll]) {
        const keys = names.map((name) => [`GET /files/${escapeKey(name)}`, { accepts: option() }]);
        const shop = await open(Object.fromEntries(keys), (app) =>
          app.use("/files", express.static(folder)),
        );
        for (const name of names) {
          for (const escapeTarget of [encodeURI, encodeURIComponent, escapeAll]) {
            const { status } = await sendTarget(shop, `/files/${escapeTarget(name)}`);
            expect([name, status]).toEqual([name, 402]);
          }
        }
        expect((await sendTarget(shop, "/files/[1]")).status).toBe(402);
      }
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("answers an undecodable path of a paid route with 400", async () => {
    const shop = await open({ "GET /items/:id": { accepts: option() } }, (app) => {
      app.use("/items", (_request, response) => void response.send(content));
    });
    const { status, answer } = await sendTarget(shop, "/items/%zz");
    expect(status).toBe(400);
    expect(answer).toContain('"error":"invalid_path"');
  });

  // Express 5 cuts the mount off such a target's scheme: its router reads "/ttp://shop".
  it.each(["http://shop", "HTTP://shop:80", "http://shop?x"])(
    "refuses %s, which has no path of its own",
    async (target) => {
      const wildcard = dialectOf(express.Router()) === "Express 4" ? "/*" : "/*rest";
      const shop = await openShop({
        express,
        routes: {
          "* /:name": { accepts: option() },
          [`* /:name${wildcard}`]: { accepts: option() },
        },
        options: { app: express() },
        serve: (app) => {
          const router = express.Router();
          router.use("/:name", (_request, response) => void response.send(content));
          app.use(["/v1", "/"], router);
        },
      });
      opened.push(shop);
      const { status, answer } = await sendTarget(shop, target);
      expect(answer).not.toContain(content);
      expect(status).toBe(400);
    },
  );

  it.each([
    "/v/..//items/seven",
    "/v/a%2Fb//items/seven",
    "/v/%2e//items/seven",
    "/v/..//",
    "/v/a%2Fb//",
  ])("reads %s as the router behind a parameter does", async (target) => {
    const shop = await open(
      {
        "GET /v/:version": { accepts: option() },
        "GET /v/:version/items/:id": { accepts: option() },
      },
      (app) => {
        const router = express.Router();
        router.get(["/", "/items/:id"], (_request, response) => void response.send(content));
        app.use("/v/:version", router);
      },
    );
    expect((await sendTarget(shop, target)).answer).not.toContain(content);
  });

  it("lets a preflight reach unsold routes, and never a sold handler", async () => {
    let runs = 0;
    const preflight = {
      method: "OPTIONS",
      headers: { Origin: "https://page.example", "Access-Control-Request-Method": "GET" },
    };
    const shop = await open(
      { "GET /paid": { accepts: option() }, "/all": { accepts: option() } },
      (app) => {
        app.get("/paid", () => {
          runs += 1;
        });
        app.all("/all", () => {
          runs += 1;
        });
      },
    );
    const passed = await sendTarget(shop, "/paid", preflight);
    expect(passed.status).toBe(200);
    expect(passed.answer).toMatch(/allow: GET/i);
    expect((await sendTarget(shop, "/all", preflight)).status).toBe(402);
    expect(runs).toBe(0);
  });

  it("sells a route beside its handler on every way to it", async () => {
    const gate = paymentMiddleware.route({ accepts: option() }, createPaperFacilitator());
    const app = express();
    const router = express.Router();
    router.get("/:a/:b", gate, (_request, response) => void response.send(content));
    app.use("/x", router);
    await gate.ready();
    const shop = await listen(app);
    opened.push(shop);
    for (const target of ["/x/1/2", "/X/%31/2/", "/x/1/2?y"]) {
      expect((await sendTarget(shop, target)).status).toBe(402);
    }
    const { headers } = await createBuyer().payFor(`${shop.url}/x/1/2`);
    await supertest(shop.url).get("/x/1/2").set(headers).expect(200, content);
  });
});
