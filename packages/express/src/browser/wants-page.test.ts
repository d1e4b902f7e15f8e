import { describe, expect, it } from "vitest";
import { wantsPage } from "./wants-page.ts";

describe("the choice between page and JSON", () => {
  it.each([
    ["a navigation of Chrome", { "sec-fetch-mode": "navigate", accept: "text/html,*/*;q=0.8" }],
    ["a navigation that accepts anything", { "sec-fetch-mode": "navigate", accept: "*/*" }],
    ["a browser on plain HTTP", { accept: "text/html,application/xhtml+xml,*/*;q=0.8" }],
    ["HTML alone", { accept: "text/html" }],
    ["HTML after another type", { accept: "application/xhtml+xml, Text/HTML;level=1, */*" }],
  ])("sends the page to %s", (_name, headers) => {
    expect(wantsPage(headers)).toBe(true);
  });

  it.each([
    ["a request without Accept", {}],
    ["curl and fetch", { accept: "*/*" }],
    ["axios", { accept: "application/json, text/plain, */*" }],
    ["fetch in a browser", { accept: "*/*", "sec-fetch-mode": "cors" }],
    ["a client that takes HTML last", { accept: "*/*, text/html" }],
    ["a client that refuses HTML", { accept: "application/json, text/html;q=0" }],
    ["a client that refuses HTML at length", { accept: "text/html; q=0.000, application/json" }],
    ["a type that only begins like HTML", { accept: "text/html5, application/json" }],
    ["an image", { accept: "image/avif,image/webp,*/*;q=0.8", "sec-fetch-mode": "no-cors" }],
  ])("sends JSON to %s", (_name, headers) => {
    expect(wantsPage(headers)).toBe(false);
  });
});
