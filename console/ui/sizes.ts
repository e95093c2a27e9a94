/** Sizes of computes that the API takes, and their words. One CU is one vCPU and 4 GB of memory. */

export const sizes: readonly number[] = [
  0.25,
  0.5,
  ...Array.from({ length: 16 }, (_, index) => index + 1),
  ...Array.from({ length: 20 }, (_, index) => 18 + 2 * index),
];

/** Larger ones are fixed. */
export const autoscalingMax = 16;

/** A plan without a limit says 0. */
export function sizesUpTo(limit: number | undefined): readonly number[] {
  return limit === undefined || limit === 0 ? sizes : sizes.filter((size) => size <= limit);
}

export const sizeText = (cu: number) => `${cu} vCPU · ${cu * 4} GB`;

export function rangeText(min: number, max: number): string {
  return min === max ? sizeText(min) : `${min} – ${max} vCPU · ${min * 4} – ${max * 4} GB`;
}

/** `0.25 – 2 CU`, for a place with little room. */
export const shortRange = (min: number, max: number) => `${min === max ? min : `${min} – ${max}`} CU`;

export const delays: readonly number[] = [60, 300, 600, 900, 1800, 3600, 21_600, 86_400, 604_800];
/** The API's words for "the usual" and "never". */
export const usualDelay = 0;
export const neverDelay = -1;
export const usualDelaySeconds = 300;
