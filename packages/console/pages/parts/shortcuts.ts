/** Pages by the key after `g`. */
export const shortcuts: Readonly<Record<string, string>> = {
  t: "/",
  p: "/payments",
  r: "/routes",
  b: "/buyers",
  n: "/channels",
  f: "/refunds",
  k: "/books",
  w: "/webhooks",
  y: "/relayers",
  c: "/chains",
  a: "/audit",
};
