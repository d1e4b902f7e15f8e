import { type BudgetState, emptyBudget } from "./budget-state.ts";

/** Where the state of a budget lives. */
export interface BudgetStore {
  /**
   * Changes the state, with nobody else changing it in between. When the change returns the state
   * that it was given, nothing is written.
   *
   * @throws PaymentError when the state cannot be read or kept; then it is unchanged.
   */
  update<T>(change: (state: BudgetState) => { state: BudgetState; result: T }): Promise<T>;
}

/** Keeps a budget in memory, for one `createPayingFetch` and its lifetime. */
export function createMemoryStore(): BudgetStore {
  let current = emptyBudget;
  return {
    // Nothing here waits, so nobody can come in between.
    async update(change) {
      const { state, result } = change(current);
      current = state;
      return result;
    },
  };
}
