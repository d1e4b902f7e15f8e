// Runs in a page before its own scripts: a wallet by EIP-6963, whose answers come from the test.
export function announceWallet({ name, uuid }) {
  const listeners = [];
  const provider = {
    on: (event, listener) => listeners.push([event, listener]),
    removeListener: (event, listener) => {
      const index = listeners.findIndex((each) => each[0] === event && each[1] === listener);
      if (index !== -1) listeners.splice(index, 1);
    },
    emit: (event, value) => {
      for (const [each, listener] of [...listeners]) if (each === event) listener(value);
    },
    request: async (request) => {
      const { result, error } = await globalThis.coinslotTestWalletAnswer(request);
      if (error !== undefined) throw Object.assign(new Error(error.message), error);
      return result;
    },
  };
  globalThis.coinslotTestWallet = provider;
  const info = Object.freeze({
    uuid,
    name,
    icon: "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 8 8'%3E%3Ccircle cx='4' cy='4' r='4' fill='%23f6851b'/%3E%3C/svg%3E",
    rdns: "test.coinslot.wallet",
  });
  const announce = () => {
    const detail = Object.freeze({ info, provider });
    globalThis.dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail }));
  };
  globalThis.addEventListener("eip6963:requestProvider", announce);
  announce();
}
