import "./style.css";
import type { PageData, PayableWay } from "../src/page-data.ts";
import { element } from "./element.ts";
import { createKeep } from "./kept-payment.ts";
import { findWallets, type Wallet } from "./provider.ts";
import { deliver, hasMissed, type Purchase, showPaid } from "./purchase.ts";
import { pay } from "./sign.ts";
import { fill, part, say } from "./view.ts";

/** After this time without a wallet, its absence is said. */
const searchMs = 1_000;

const data: PageData = JSON.parse(part("data").textContent ?? "");
const { texts, ways, form, method } = data;
const behind = data.time - Date.now();
const body = form.state === "kept" ? form.body : "";
const purchase: Purchase = {
  data,
  keep: createKeep(`${method} ${location.pathname}${location.search} ${body}`),
  now: () => Date.now() + behind,
  wallets: [],
  run: 0,
  offer,
};
let [chosen] = ways;
let isStarted = false;
const relabel: (() => void)[] = [];

if (form.state !== "lost" && chosen !== undefined) {
  const buttons = element("div", { class: "wallets" });
  part("pay").append(...choiceOfWays(), element("p", {}, texts.choose), buttons);
  findWallets((wallet) => {
    purchase.wallets.push(wallet);
    buttons.append(buttonOf(wallet));
    part("otherwise").removeAttribute("open");
    if (purchase.wallets.length === 1) start();
  });
  setTimeout(() => {
    if (purchase.wallets.length > 0) return;
    start();
    if (part("status").childElementCount === 0)
      say(data, { mood: "plain", lines: [texts.noWallet] });
  }, searchMs);
}

/** Goes on where this purchase stands: a payment that was sent is sent again, without a click. */
function start(): void {
  if (isStarted) return;
  isStarted = true;
  const kept = purchase.keep.read();
  if (kept?.signature === undefined) offer();
  else if (hasMissed(kept)) void deliver(purchase, kept);
  else if (kept.transaction !== undefined) showPaid(purchase, kept);
  else if (kept.isSent) void deliver(purchase, kept);
  else {
    const actions = { resume: () => void deliver(purchase, kept) };
    say(data, { mood: "plain", lines: [texts.nothingMoved], actions });
  }
}

/** Shows the wallets, and no message. */
function offer(): void {
  part("pay").hidden = purchase.wallets.length === 0;
  part("status").replaceChildren();
  part("status").className = "";
}

function buttonOf(wallet: Wallet): HTMLElement {
  const icon = wallet.icon === "" ? [] : [element("img", { src: wallet.icon, alt: "" })];
  const label = element("span", {}, labelOf(wallet));
  const button = element("button", { type: "button" }, ...icon, label);
  button.addEventListener("click", () => {
    if (chosen === undefined) return;
    part("pay").hidden = true;
    void pay(purchase, wallet, chosen);
  });
  relabel.push(() => label.replaceChildren(labelOf(wallet)));
  return button;
}

function labelOf({ name }: Wallet): string {
  return fill(texts.pay, { price: chosen?.price ?? "", wallet: name });
}

/** A radio button for each way to pay, where there are several. */
function choiceOfWays(): HTMLElement[] {
  if (ways.length < 2) return [];
  part("prices").hidden = true;
  const choices = ways.map((way, index) => {
    const input = element("input", { type: "radio", name: "way", value: String(index) });
    input.checked = index === 0;
    input.addEventListener("change", () => choose(way));
    const network = fill(texts.network, { network: way.networkName });
    return element("label", {}, input, `${way.price} ${network}`);
  });
  return [element("fieldset", {}, element("legend", {}, texts.ways), ...choices)];
}

function choose(way: PayableWay): void {
  chosen = way;
  for (const write of relabel) write();
}
