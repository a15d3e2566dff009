-- Texts in their odd forms to every type that has a rule of its own for them.
SELECT s, TRY_CAST(s AS TIMESTAMP), TRY_CAST('2020-01-01 10:00:00' || s AS TIMESTAMP), TRY_CAST('2020-01-01 10:00' || s AS TIMESTAMP) FROM (VALUES ('+0'), ('+02'), ('+020'), ('+0200'), ('-0330'), ('+9999'), ('-99'), ('+99:99'), ('+0200 '), ('+02:'), ('+02: '), ('+02:3'), ('+02:30:'), ('+02:30: '), ('+02:30:4'), ('+02:30:45'), ('+02:30:45:'), ('+023045'), ('+0230:'), ('+0230:45'), ('+02:3045'), ('+02 30'), ('+02Z'), ('Z+02'), (' +0200'), (' UTC'), ('+02 UTC'), ('z'), ('+02::30'), ('+'), ('-:')) t(s);
SELECT s, TRY_CAST(s AS DATE), TRY_CAST(s AS TIMESTAMP) FROM (VALUES ('inf'), ('inf '), (' -inf'), ('infinity '), ('-Infinity'), ('epoch '), ('-epoch'), ('+inf'), ('infinit')) t(s);
SELECT '2020-01-01T10:00:00+0200'::TIMESTAMP, id FROM v WHERE id < 3;
-- fails
SELECT (s || '+020')::TIMESTAMP FROM (VALUES ('2020-01-01T10:00:00')) t(s);
