// Exits with 0 if a URL answers 2xx, else with 1: for containers, whose image has no curl.
try {
  const { ok, status } = await fetch(process.argv[2] ?? "", { signal: AbortSignal.timeout(4_000) });
  console.log(status);
  process.exitCode = ok ? 0 : 1;
} catch (error) {
  console.log(error.cause?.message ?? error.message);
  process.exitCode = 1;
}
