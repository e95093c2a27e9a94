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
   * Before a start or a stop: from here on every call with an older generation is refused, also by other workers.
   * Returns what was recorded before; null for a compute that is new.
   */
  async claim(wanted: ComputeRecord): Promise<ComputeRecord | null> {
    if (await this.#client.create(secrets, this.#manifest(wanted))) return null;
    let before: ComputeRecord | null = null;
    const kept = await this.#client.change(secrets, wanted.endpointId, (current) => {
      before = readRecord(current);
      const { generation, endpointId } = wanted;
      if (generation < before.generation) throw new StaleGenerationError(endpointId, generation, before.generation);
      const { metadata, stringData } = this.#manifest(wanted);
      return { metadata: { annotations: metadata.annotations }, stringData };
    });
    // Removed in between: it is as new.
    return kept === null ? this.claim(wanted) : before;
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
