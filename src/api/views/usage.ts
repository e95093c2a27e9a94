/** Counters of the month, as branches and projects show them. */
import type { Branch } from '../../core/branch.ts';

export function usageView(usage: Branch['usage']) {
  return {
    cpu_used_sec: whole(usage.cpu),
    compute_time_seconds: whole(usage.compute),
    active_time_seconds: whole(usage.active),
    written_data_bytes: whole(usage.written),
    // Bytes between clients and computes are not counted.
    data_transfer_bytes: 0,
  };
}

export const whole = (value: number | undefined) => Math.floor(value ?? 0);
