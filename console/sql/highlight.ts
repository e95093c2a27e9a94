/** The colours of SQL in the editor. They are those of `styles/sql.css`, which has each for light and for dark. */
import { HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { tags } from '@lezer/highlight';

export const sqlColours = syntaxHighlighting(
  HighlightStyle.define([
    { tag: tags.keyword, color: 'var(--sql-keyword)', fontWeight: '600' },
    { tag: [tags.string, tags.special(tags.string)], color: 'var(--sql-string)' },
    { tag: [tags.number, tags.bool, tags.null], color: 'var(--sql-number)' },
    { tag: tags.comment, color: 'var(--sql-comment)', fontStyle: 'italic' },
    { tag: [tags.typeName, tags.standard(tags.name)], color: 'var(--sql-type)' },
    { tag: [tags.operator, tags.punctuation, tags.special(tags.name)], color: 'var(--sql-operator)' },
  ]),
);
