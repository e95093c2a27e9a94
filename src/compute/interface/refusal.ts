/** When a server of a tenant's refuses what Catnap asks of it for good. */

/** The server refused a statement, or would refuse it, now and later: trying once more does not help. */
export class ServerRefusalError extends Error {
  readonly sqlState: string;

  constructor(message: string, sqlState: string) {
    super(message);
    this.name = 'ServerRefusalError';
    this.sqlState = sqlState;
  }
}

/** Not supported, bad data, and a statement that is wrong or not permitted. Anything else may pass by itself. */
const finalClasses = /^(0A|22|42)/;
/** Something is missing, or already there: an owner may have dropped or made it by SQL in that very moment. */
const maybeRaces = ['42704', '42710', '42P01', '42P04', '42P06', '42P07'];

export const isFinalState = (sqlState: string) => finalClasses.test(sqlState) && !maybeRaces.includes(sqlState);
