/**
 * What Catnap keeps of each compute, whether it runs or not: the newest generation that anybody has asked for, the
 * branch that it was for, and the password of Catnap's login there. A compute may move from one branch to another, and
 * the Cluster of a branch knows only the compute that serves it, so each compute has a Secret of its own.
 */
import { asBranchId, asEndpointId, asProjectId } from '../../../lib/ids.ts';
import { type ComputeRef, StaleGenerationError } from '../../interface/driver.ts';
import type { KubernetesClient } from '../client/client.ts';
import { apiVersionOf } from '../client/objects.ts';
import {
  branchAnnotation,
  endpointLabel,
  generationAnnotation,
  labelsOfEndpoint,
  labelsOfEverything,
  projectLabel,
} from '../manifests/labels.ts';
import { type Secret, secrets } from '../objects/kinds.ts';

export interface ComputeRecord extends Pick<ComputeRef, 'projectId' | 'branchId' | 'endpointId'> {
  readonly generation: number;
  readonly adminSecret: string;
}

export class ComputeRecords {
  readonly #client: KubernetesClient;
  readonly #namespace: string;

  constructor(client: KubernetesClient) {
    this.#client = client;
    this.#namespace = client.namespace;
  }

  async find(endpointId: string): Promise<ComputeRecord | null> {
    const found = await this.#client.find(secrets, endpointId);
    return found && readRecord(found);
  }

  /**
   * Before a start: from here on every call with an older generation is refused, also by other workers. Returns what
   * was recorded before; null for a compute that is new.
   */
  async claim(wanted: ComputeRecord): Promise<ComputeRecord | null> {
    let before: ComputeRecord | null = null;
    const kept = await this.#client.change(secrets, wanted.endpointId, (current) => {
      refuseOlder(current, wanted);
      before = readRecord(current);
      const { metadata, stringData } = this.#manifest(wanted);
      return { metadata: { annotations: metadata.annotations }, stringData };
    });
    if (kept !== null) return before;
    // If another worker made it in between, it is claimed from that one.
    return (await this.#client.create(secrets, this.#manifest(wanted))) ? null : this.claim(wanted);
  }

  /** Before a stop. What never ran needs no record, and has no older generation to keep out. */
  async raise(ref: Pick<ComputeRef, 'endpointId'>, generation: number): Promise<ComputeRecord | null> {
    const kept = await this.#client.change(secrets, ref.endpointId, (current) => {
      refuseOlder(current, { endpointId: ref.endpointId, generation });
      if (readRecord(current).generation === generation) return null;
      return { metadata: { annotations: { [generationAnnotation]: String(generation) } } };
    });
    return kept && readRecord(kept);
  }

  async list(): Promise<ComputeRecord[]> {
    const { items } = await this.#client.list(secrets, labelsOfEverything);
    return items.filter(({ metadata }) => metadata.labels?.[endpointLabel] !== undefined).map(readRecord);
  }

  async remove(endpointId: string): Promise<void> {
    await this.#client.remove(secrets, endpointId);
  }

  #manifest({ generation, branchId, adminSecret, ...ref }: ComputeRecord): Secret {
    const annotations = { [generationAnnotation]: String(generation), [branchAnnotation]: branchId };
    return {
      apiVersion: apiVersionOf(secrets),
      kind: secrets.kind,
      metadata: { name: ref.endpointId, namespace: this.#namespace, labels: labelsOfEndpoint(ref), annotations },
      type: 'Opaque',
      stringData: { password: adminSecret },
    };
  }
}

function refuseOlder(current: Secret, { endpointId, generation }: { endpointId: string; generation: number }): void {
  const seen = readRecord(current).generation;
  if (generation < seen) throw new StaleGenerationError(endpointId, generation, seen);
}

function readRecord({ metadata, data }: Secret): ComputeRecord {
  const { labels = {}, annotations = {} } = metadata;
  return {
    projectId: asProjectId(labels[projectLabel] ?? ''),
    branchId: asBranchId(annotations[branchAnnotation] ?? ''),
    endpointId: asEndpointId(metadata.name),
    generation: Number(annotations[generationAnnotation] ?? 0),
    adminSecret: Buffer.from(data?.password ?? '', 'base64').toString('utf8'),
  };
}
