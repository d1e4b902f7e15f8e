// Ends with 0 if a URL answers well, else with 1: for containers, whose image has no curl.
const answer = await fetch(process.argv[2] ?? "", { signal: AbortSignal.timeout(4_000) });
process.exit(answer.ok ? 0 : 1);
