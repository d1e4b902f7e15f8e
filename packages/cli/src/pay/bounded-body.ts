const maxBytes = 262_144;
/** Short, since the search for an offer has had its full time before. */
const maxMs = 2_000;

/** Yields a body within the size and time that a refusal needs: it may never end. */
export async function* boundedBody(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  const stop = () => void reader.cancel().catch(() => undefined);
  const timer = setTimeout(stop, maxMs);
  try {
    for (let length = 0; length < maxBytes; ) {
      const { done, value } = await reader.read();
      if (done) return;
      const rest = value.subarray(0, maxBytes - length);
      length += rest.byteLength;
      yield rest;
    }
  } finally {
    clearTimeout(timer);
    stop();
  }
}
