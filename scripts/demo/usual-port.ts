/** Starts a program at its usual port or, where another program has that, at a free one. */
export async function atUsualPort<Started, Options>(
  start: (options: Options) => Promise<Started>,
  { usual, free }: { usual: Options; free: Options },
): Promise<Started> {
  try {
    return await start(usual);
  } catch (error) {
    const isTaken = error instanceof Error && "code" in error && error.code === "EADDRINUSE";
    if (!isTaken) throw error;
    return start(free);
  }
}
