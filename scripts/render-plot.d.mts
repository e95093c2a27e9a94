export function fitPower(points: readonly (readonly number[])[]): number;
