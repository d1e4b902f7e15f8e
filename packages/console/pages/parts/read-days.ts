/** Times of the days that an address has as `from` and `to`, in the browser's time zone. */
export function readDays(query: URLSearchParams): { from?: string; to?: string } {
  const days: { from?: string; to?: string } = {};
  for (const name of ["from", "to"] as const) {
    const day = query.get(name);
    const date = day === null ? undefined : new Date(`${day}T00:00`);
    if (date !== undefined && !Number.isNaN(date.getTime())) days[name] = date.toISOString();
  }
  return days;
}
