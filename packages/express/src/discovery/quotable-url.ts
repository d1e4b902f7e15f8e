/**
 * Encodes the signs of a URL that end a link, or that a shell interprets between double quotes:
 * spaces, quotes, parentheses, `$`, backticks, backslashes.
 */
export function quotableUrl(url: string): string {
  return url.replace(/[^\w\-.~&,;=:@%/?{}[\]+]/gu, (sign) =>
    [...Buffer.from(sign, "utf8")]
      .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`)
      .join(""),
  );
}
