/** Regions. One installation has one. */
import { Type } from 'typebox';
import { idOf } from './common.ts';

export const RegionsReply = Type.Object({
  regions: Type.Array(
    Type.Object({
      region_id: Type.String({ description: 'What `region_id` of a new project may be.' }),
      name: Type.String({ description: 'Name for people.' }),
      default: Type.Boolean({ description: 'Used when a request names none.' }),
      geo_lat: Type.String({ description: 'Latitude, as text.' }),
      geo_long: Type.String({ description: 'Longitude, as text.' }),
    }),
  ),
});
export const RegionsQuery = Type.Object({ org_id: Type.Optional(idOf('organization')) });
