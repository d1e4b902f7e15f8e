import type { Listening } from "@coinslot/devnet";
import type { Express } from "express";
import { afterEach, describe, expect, it } from "vitest";
import { expressVersions } from "../testing/express-versions.ts";
import { sendTarget } from "../testing/send-target.ts";
import { openShop, option } from "../testing/shop.ts";

const opened: Listening[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((listening) => listening.close()));
});

const content = "the content that is sold";

describe.each(expressVersions)("a wildcard of $name between two texts, in a router", (version) => {
  const { name, express } = version;
  const wildcard = (path: string) => (name === "Express 4" ? path.replace(/\*\w+/g, "*") : path);

  async function open(mounts: readonly string[], path = "/a/*rest/b") {
    const app = express();
    const serve = (served: Express) => {
      const inner = express.Router();
      inner.get(wildcard(path), (_request, response) => void response.send(content));
      const mount = (mounted: ReturnType<typeof express.Router>, at: string) =>
        express.Router().use(wildcard(at), mounted);
      served.use(mounts.reduceRight(mount, inner));
    };
    const key = `GET ${wildcard(mounts.join("") + path)}` as const;
    const shop = await openShop({
      express,
      routes: { [key]: { accepts: option() } },
      serve,
      options: { app },
    });
    opened.push(shop);
    return shop;
  }

  it.each([[["/m"]], [["/m", "/n"]], [["", "/m"]]])(
    "is sold under any number of slashes, behind mounts at %j",
    async (mounts) => {
      const shop = await open(mounts);
      const prefix = mounts.join("").slice(1).split("/");
      for (const slashes of ["/", "//", "///"]) {
        for (const rest of ["//b", "///b", "/x/b", "//x//b", "////b/"]) {
          const target = `${[...prefix.map((text) => `/${text}`), ""].join("")}${slashes}a${rest}`;
          for (const each of [target, `/${target}`, target.replace("/n", "//n")]) {
            const { answer } = await sendTarget(shop, each);
            expect(answer, each).not.toContain(content);
          }
        }
      }
      expect((await sendTarget(shop, `${mounts.join("")}/a/x/b`)).status).toBe(402);
    },
  );

  it("is sold in the path of a mount, too", async () => {
    const shop = await open(["/tenants/*rest/files"], "/:name");
    for (const target of [
      "//files//x",
      "//files/x",
      "///files///x",
      "/a//files//x",
      "/a/files//x",
    ]) {
      const { answer } = await sendTarget(shop, `/tenants${target}`);
      expect(answer, target).not.toContain(content);
    }
    expect((await sendTarget(shop, "/tenants/a/files/x")).status).toBe(402);
  });

  it("refuses a path with many runs of slashes, or a long one with any, and no query", async () => {
    const shop = await open(["/m"]);
    expect((await sendTarget(shop, `/m${"//a".repeat(6)}`)).status).toBe(400);
    expect((await sendTarget(shop, `/m${"//a".repeat(5)}`)).status).toBe(404);
    expect((await sendTarget(shop, `/m/a/x/b?${"//a".repeat(6)}`)).status).toBe(402);
    expect((await sendTarget(shop, `/m//${"a".repeat(997)}`)).status).toBe(400);
    expect((await sendTarget(shop, `/m//${"a".repeat(996)}`)).status).toBe(404);
    expect((await sendTarget(shop, `/m/${"a".repeat(2_000)}`)).status).toBe(404);
  });
});
