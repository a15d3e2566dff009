-- Everything around joins: sets, groups, limits, CTEs, values. Ordered queries say so.
SELECT k FROM a INTERSECT SELECT k FROM b;
SELECT k, g FROM a INTERSECT ALL SELECT k, g FROM b;
SELECT k FROM a EXCEPT SELECT k FROM b WHERE k > 3;
SELECT k, s FROM a EXCEPT ALL SELECT k, s FROM b;
SELECT k FROM a UNION SELECT s FROM b;
SELECT k FROM a UNION ALL SELECT id + 0.5 FROM b;
SELECT 1::TINYINT UNION SELECT 1::HUGEINT UNION ALL SELECT NULL;
SELECT k FROM a UNION ALL SELECT k FROM b UNION ALL SELECT id FROM e;
SELECT id FROM e UNION SELECT id FROM e;
SELECT k FROM a EXCEPT SELECT id FROM e;
SELECT id FROM e INTERSECT SELECT k FROM a;
SELECT DATE '2020-01-31' UNION ALL SELECT TIMESTAMP '2020-01-31 01:02:03';
(SELECT k FROM a ORDER BY id LIMIT 3) UNION ALL (SELECT k FROM b ORDER BY id DESC LIMIT 2);
SELECT k, id FROM a UNION BY NAME SELECT id, s FROM b;
WITH x AS (SELECT k, count(*) AS n FROM a GROUP BY k) SELECT * FROM x p JOIN x q ON p.n = q.n JOIN x r ON q.k = r.k;
WITH x AS MATERIALIZED (SELECT k, count(*) AS n FROM a GROUP BY k) SELECT p.k, q.n, r.n FROM x p JOIN x q ON p.k = q.k JOIN x r ON q.k = r.k;
WITH x AS MATERIALIZED (SELECT * FROM a WHERE g = 1), y AS MATERIALIZED (SELECT * FROM x WHERE k > 2) SELECT (SELECT count(*) FROM x), (SELECT count(*) FROM y), x.id FROM x JOIN y USING (id);
WITH x AS MATERIALIZED (SELECT 1 AS n) SELECT * FROM x UNION ALL SELECT n + 1 FROM x UNION ALL SELECT n + 2 FROM x;
WITH x AS MATERIALIZED (SELECT * FROM a) SELECT 1 FROM one;
WITH x AS (WITH y AS (SELECT k FROM a) SELECT k + 1 AS k FROM y) SELECT x.k FROM x WHERE x.k IN (SELECT k FROM x WHERE k < 6);
-- ordered
SELECT count(*) FROM e;
SELECT count(*), count(id), sum(id), avg(id), min(s), max(s), first(id), any_value(s), count(DISTINCT s) FROM e;
SELECT count(*) FILTER (id > 3), sum(id) FILTER (false), count(DISTINCT k) FILTER (g = 9) FROM a WHERE id < 0;
SELECT count(*) FILTER (id > 3), sum(DISTINCT k) FILTER (g = 1), avg(k) FILTER (k IS NULL) FROM a;
SELECT g, count(*) FILTER (k > 3), sum(DISTINCT k), count(DISTINCT s), sum(k), min(s) FILTER (k = 2) FROM a GROUP BY g;
SELECT g, count(DISTINCT k), count(DISTINCT s), sum(DISTINCT k), sum(DISTINCT id), count(*) FROM a GROUP BY g;
SELECT g, k, count(*) FROM e GROUP BY g, k;
SELECT g FROM e GROUP BY g HAVING count(*) = 0;
SELECT count(*) FROM a HAVING count(*) < 0;
SELECT 1 FROM a GROUP BY ();
SELECT g, count(*) FROM a GROUP BY g HAVING sum(k) > 10 AND min(s) IS NOT NULL;
SELECT k, g, count(*), sum(id) FROM a GROUP BY GROUPING SETS ((k), (g), ());
SELECT k, g, count(*), sum(id) FROM a GROUP BY ROLLUP (k, g);
SELECT k, g, s, count(*), GROUPING(k, g) FROM a GROUP BY CUBE (k, g, s);
SELECT k, count(DISTINCT s) FROM a GROUP BY ROLLUP (k);
SELECT g, count(*) FROM e GROUP BY ROLLUP (g);
SELECT count(*) FROM e GROUP BY GROUPING SETS ((), ());
SELECT DISTINCT k, g FROM a;
SELECT DISTINCT k + g, s IS NULL FROM a;
-- falls back: DISTINCT ON
SELECT DISTINCT ON (g) g, k, id FROM a ORDER BY g, k DESC NULLS LAST, id;
-- falls back: DISTINCT ON
SELECT DISTINCT ON (k, g) k, g, id FROM a ORDER BY k, g, id DESC;
-- falls back: DISTINCT ON
SELECT DISTINCT ON (g) g, id FROM a ORDER BY g, id LIMIT 2;
-- ordered
SELECT id FROM a LIMIT 0;
-- ordered
SELECT id, s FROM a LIMIT 7;
-- ordered
SELECT id, s FROM a LIMIT 10 OFFSET 5;
-- ordered
SELECT id FROM a LIMIT 10 OFFSET 19995;
-- ordered
SELECT id FROM a OFFSET 30;
-- ordered
SELECT id FROM a OFFSET 1000000;
-- ordered
SELECT id FROM a WHERE g = 2 LIMIT 5;
-- ordered
SELECT id FROM a WHERE g = 2 LIMIT 5 OFFSET 3;
-- ordered
SELECT id FROM a LIMIT 100000000000;
-- ordered
SELECT id FROM a ORDER BY id LIMIT 3 OFFSET 100000;
-- ordered
SELECT id FROM a ORDER BY id LIMIT 0;
-- ordered
SELECT id, k FROM a ORDER BY k NULLS FIRST, id DESC LIMIT 12;
-- ordered
SELECT id, s FROM a ORDER BY s DESC NULLS LAST, id LIMIT 12 OFFSET 9;
-- ordered
SELECT id FROM (SELECT id FROM a LIMIT 9) ORDER BY id DESC;
-- ordered
SELECT id FROM (SELECT id FROM a ORDER BY k, id LIMIT 9) x ORDER BY id DESC LIMIT 4;
-- ordered
SELECT id, k, g, s FROM a ORDER BY k, g DESC, s NULLS FIRST, id;
-- ordered
SELECT id FROM a ORDER BY id % 7, -id;
-- ordered
SELECT id FROM a ORDER BY ALL DESC;
-- falls back: LIMIT
SELECT id FROM a LIMIT (SELECT 3);
-- falls back: LIMIT
SELECT id FROM a LIMIT 10%;
VALUES (1, 'a'), (2, NULL), (NULL, '');
SELECT * FROM (VALUES (1, 2.50, DATE '2020-02-29'), (NULL, 3, NULL)) AS t(x, y, z) WHERE x = 1 OR x IS NULL;
SELECT a.id, t.y FROM a JOIN (VALUES (1, 'eins'), (2, 'zwei')) AS t(x, y) ON a.k = t.x;
SELECT 1, 'text', NULL, 1.50, TRUE, DATE '2020-01-01', 1e3, 170141183460469231731687303715884105727;
SELECT 42 WHERE false;
SELECT 42 WHERE NULL;
SELECT * FROM a WHERE false;
SELECT count(*) FROM a WHERE false;
SELECT x FROM (SELECT 1 AS x) LIMIT 0;
SELECT count(*), count(1), count(NULL), sum(1), min(NULL) FROM a;
SELECT *, 1 AS extra FROM one;
SELECT a.* EXCLUDE (s) FROM a WHERE id < 4;
SELECT first(id) FROM one;
-- falls back: last
SELECT last(id) FROM one;
SELECT first(s), any_value(s) FROM a WHERE id = 3;
SELECT sum(id) FROM a GROUP BY ALL;
SELECT k, sum(id) FROM a GROUP BY ALL;
SELECT sum(c0), sum(c119), max(c60) FROM wide;
SELECT * FROM wide;
SELECT * FROM wide ORDER BY c7 DESC LIMIT 3;
SELECT x.c1, y.* FROM wide x JOIN wide y ON x.c0 = y.c0 + 1;
SELECT c0 % 2, sum(c1), sum(c2), max(c3), sum(c4), sum(c5), max(c6), sum(c7), sum(c8), max(c9), sum(c10), sum(c11), max(c12), sum(c13), sum(c14), max(c15), sum(c16), sum(c17), max(c18), sum(c19), sum(c20), max(c21), sum(c22), sum(c23), max(c24), sum(c25), sum(c26), max(c27), sum(c28), sum(c29), max(c30), sum(c31), sum(c32), max(c33), sum(c34), sum(c35), max(c36), sum(c37), sum(c38), max(c39), sum(c40), sum(c41), max(c42), sum(c43), sum(c44), max(c45), sum(c46), sum(c47), max(c48), sum(c49), sum(c50), max(c51), sum(c52), sum(c53), max(c54), sum(c55), sum(c56), max(c57), sum(c58), sum(c59) FROM wide GROUP BY ALL;
SELECT count(*) FROM wide GROUP BY ALL HAVING count(*) > 0;
SELECT length(s), s = repeat('x', 1000000), upper(substring(s, 999990, 20)), s LIKE '%xxz' FROM big;
SELECT s FROM big WHERE length(s) < 20;
SELECT max(s) = min(s), count(DISTINCT s), max(length(s)) FROM big;
SELECT length(x.s) FROM big x JOIN big y ON x.s = y.s;
-- ordered
SELECT length(s), substring(s, -3) FROM big ORDER BY s DESC;
SELECT k, count(*), sum(v), min(v), max(v) FROM dup GROUP BY k;
SELECT count(*), sum(one.id) FROM dup JOIN one ON dup.k = one.id;
SELECT count(*), sum(dup.v) FROM one JOIN dup ON dup.k = one.id + 1;
SELECT count(*) FROM dup WHERE k IN (SELECT k FROM dup WHERE v < 10);
SELECT count(*), sum(x.v) FROM dup x JOIN (SELECT * FROM dup WHERE v < 5) y ON x.k = y.k;
SELECT count(*) FROM dup x LEFT JOIN dup y ON x.k = y.k AND x.v = y.v;
SELECT count(DISTINCT k), count(DISTINCT v), sum(DISTINCT v % 10) FROM dup;
-- ordered
SELECT k, v FROM dup ORDER BY k, v DESC LIMIT 5;
SELECT sum(v)::VARCHAR, avg(v), sum(v * v), sum(v::DOUBLE) FROM dup;
SELECT bool_and(v > 2), bool_or(v > 2), bool_and(v > 2) FILTER (WHERE k IS NULL), bool_or(NULL::BOOLEAN), bool_and(DISTINCT v < 5) FROM dup;
SELECT k, bool_and(v > 2), bool_or(v > 2), bool_and(v > 2 AND v < 9) FROM dup GROUP BY k;
-- ordered
SELECT (v * 2)::TINYINT, k FROM dup ORDER BY v LIMIT 5;
-- ordered
SELECT v * 2, k, v % 7 FROM dup ORDER BY k DESC, v LIMIT 7 OFFSET 3;
-- ordered
SELECT x.v + 1, upper(x.k::VARCHAR) FROM (SELECT v, k, v * 3 AS w FROM dup) x WHERE x.w % 2 = 0 ORDER BY x.v DESC LIMIT 9;
-- ordered
SELECT a.k, sum(v) + 1, count(*) * 2 FROM dup a GROUP BY a.k ORDER BY a.k LIMIT 4;
