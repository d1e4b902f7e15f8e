import { encode } from "uqr";

/** Longer texts make a code that a telephone hardly reads. */
const maxText = 300;

/**
 * Writes a text as a QR code in SVG, dark on light in every theme, which readers need.
 *
 * @returns `undefined` for a text too long to be read from a screen
 */
export function qrCode(text: string): string | undefined {
  if (text.length > maxText) return undefined;
  // The best of eight masks would take eight times as long, and any page is asked for by strangers.
  const { data, size } = encode(text, { ecc: "L", border: 2, maskPattern: 3, boostEcc: false });
  const runs = data.map((row, y) => rowOf(row, y)).join("");
  return `<svg class="qr" viewBox="0 0 ${size} ${size}" role="img" aria-label="QR" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h${size}v${size}H0z"/><path fill="#000" d="${runs}"/></svg>`;
}

/** One rectangle for each run of dark modules. */
function rowOf(row: readonly boolean[], y: number): string {
  let path = "";
  for (let x = 0; x < row.length; x += 1) {
    if (row[x] !== true) continue;
    const start = x;
    while (row[x + 1] === true) x += 1;
    path += `M${start} ${y}h${x - start + 1}v1H${start}z`;
  }
  return path;
}
