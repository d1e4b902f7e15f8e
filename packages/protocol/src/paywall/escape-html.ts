const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/**
 * Escapes a text for HTML: for the content of an element, and for an attribute in quotes. Control
 * characters, which no page shows, become U+FFFD, and so do marks that reverse the direction of
 * text.
 */
export function escapeHtml(text: string): string {
  return text
    .replace(/[^\P{Cc}\t\n\r]|[\u{202a}-\u{202e}\u{2066}-\u{2069}]/gu, "\ufffd")
    .replace(/[&<>"']/g, (sign) => entities[sign] ?? "");
}

/**
 * Writes a value as JSON for a script element. No sign in it ends the element or begins a comment.
 */
export function scriptJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
