/** The parts of the API's replies that the commands read. */

export interface WireProject {
  readonly id: string;
  readonly name: string;
  readonly org_id?: string;
}

export interface WireOrganization {
  readonly id: string;
  readonly name: string;
  readonly plan: string;
}

export interface WireEndpoint {
  readonly id: string;
  readonly project_id: string;
  readonly branch_id: string;
  readonly current_state: string;
}

export interface WireDatabase {
  readonly name: string;
  readonly owner_name: string;
}

export interface WireRole {
  readonly name: string;
}

export interface WireApiKey {
  readonly id: number;
  readonly name: string;
  readonly created_at: string;
  readonly last_used_at?: string | null;
  readonly project_id?: string;
}

export interface WireNewApiKey extends WireApiKey {
  readonly key: string;
}

/** `/status.json`; everything but the version is told only to visitors from the same machine. */
export interface WireStatus {
  readonly name: string;
  readonly version: string;
  readonly api_url?: string;
  readonly database_port?: number;
  readonly limits_enforced?: boolean;
  readonly counts?: {
    readonly projects: number;
    readonly endpoints: { readonly active: number; readonly idle: number; readonly init: number };
  };
}

export interface WireMail {
  readonly id: number;
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly status: string;
  readonly error?: string;
  readonly created_at: string;
}
