/**
 * Encodes the signs of a URL that end it in a link, or mean something between the double quotes of
 * a shell: spaces, quotes, parentheses, `$`, backticks, backslashes.
 */
export function quotableUrl(url: string): string {
  return url.replace(/[^\w\-.~&,;=:@%/?{}[\]+]/gu, (sign) =>
    [...Buffer.from(sign, "utf8")]
      .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`)
      .join(""),
  );
}
