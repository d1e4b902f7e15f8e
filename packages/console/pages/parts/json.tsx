/** Characters that change the direction of what follows, and are seen nowhere. */
const turning = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

function escapeSequence(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** A message as JSON. A scrolling region needs the focus, so that a keyboard can move it. */
export function Json({ value, what }: { value: unknown; what: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the focus
    <section class="json" aria-label={what} tabIndex={0}>
      <pre>{JSON.stringify(value, null, 2).replace(turning, escapeSequence)}</pre>
    </section>
  );
}
