import jsQR from "jsqr";
import { expect, it } from "vitest";
import { qrCode } from "./qr-code.ts";

/** Pixels of a module, as a camera sees it. */
const scale = 4;

/** Draws the rectangles of the SVG's dark path, and reads them as a telephone does. */
function decode(svg: string): string | undefined {
  const size = Number(/viewBox="0 0 (\d+) \1"/.exec(svg)?.[1]);
  const width = size * scale;
  const pixels = new Uint8ClampedArray(width * width * 4).fill(255);
  const dark = /fill="#000" d="([^"]+)"/.exec(svg)?.[1] ?? "";
  for (const [, x, y, length] of dark.matchAll(/M(\d+) (\d+)h(\d+)v1H\d+z/g)) {
    for (let row = 0; row < scale; row += 1) {
      for (let column = 0; column < Number(length) * scale; column += 1) {
        const pixel = (Number(y) * scale + row) * width + Number(x) * scale + column;
        pixels.fill(0, pixel * 4, pixel * 4 + 3);
      }
    }
  }
  return jsQR.default(pixels, width, width)?.data;
}

it.each([
  "https://api.example.com/report?week=47",
  "http://127.0.0.1:4021/weather",
  "https://shop.example/%E6%9C%88?q=%22%3Cb%3E&r=a+b#part",
  `https://shop.example/${"long/".repeat(50)}`.slice(0, 300),
])("is the URL %s for a reader", (url) => {
  expect(decode(qrCode(url) ?? "")).toBe(url);
});

it("is left out for a text that is read badly from a screen", () => {
  expect(qrCode("x".repeat(301))).toBeUndefined();
});
