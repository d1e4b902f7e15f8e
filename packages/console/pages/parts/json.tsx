/** A message as JSON. A scrolling region needs the focus, so that a keyboard can move it. */
export function Json({ value, what }: { value: unknown; what: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the focus
    <section class="json" aria-label={what} tabIndex={0}>
      <pre>{JSON.stringify(value, null, 2)}</pre>
    </section>
  );
}
