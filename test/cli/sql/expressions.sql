-- Expressions over columns of the type table v (id and a column per type) and over constants.
SELECT id, s LIKE 'a%', s LIKE '%l', s LIKE '_b%', s LIKE '%\%' ESCAPE '\', s LIKE 'a!_b' ESCAPE '!', s NOT LIKE '%e%', s LIKE '', s LIKE '%' FROM v;
SELECT id, s ILIKE 'A%', s NOT ILIKE '%L' FROM v;
SELECT id FROM v WHERE s LIKE '_t_';
SELECT id, s LIKE '%%' ESCAPE '%', s LIKE 'a%%' ESCAPE '%', s LIKE '%%a%%' ESCAPE '%', s LIKE 'a%_' ESCAPE '%', s LIKE '__' ESCAPE '_' FROM v;
SELECT id FROM v WHERE s LIKE '%bcd%jk%';
SELECT id FROM v WHERE s LIKE '🦆%' OR s LIKE '%duck';
SELECT id, s LIKE s, s LIKE '%' || s, s LIKE s || '_' FROM v;
SELECT id, substring(s, 2, 3), substring(s, -3), substring(s, 0, 2), substring(s, 3), substring(s, -5, 3), substring(s, 2, 0), substring(s, 1, 1000) FROM v;
SELECT id, substring(s, 3, -2), substring(s, 100, 5) FROM v;
-- falls back: left
SELECT id, left(s, 3), right(s, 3), left(s, -2), right(s, -2) FROM v;
SELECT id, substring(s, i1, 3), substring(s, 1, i1 % 5) FROM v;
SELECT id, length(s), upper(s), lower(s) FROM v;
-- falls back: strlen
SELECT id, strlen(s) FROM v;
SELECT id, s || '-' || s, concat(s, NULL, '-', id), s || NULL FROM v;
-- falls back: concat_ws
SELECT id, concat_ws('-', s, id) FROM v;
SELECT id, starts_with(s, 'abc'), prefix(s, 'é'), suffix(s, 'é'), contains(s, 'c'), s ^@ 'a', ends_with(s, 'm') FROM v;
-- falls back: trim
SELECT id, trim(s), ltrim(s), rtrim(s), replace(s, 'a', 'bb'), reverse(s) FROM v;
SELECT id, s = 'abcdefghijkl', s > 'abcdefghijkl', s < 'abcdefghijklm', s = '', s IS NULL, s <> '' FROM v;
SELECT id, abs(i4), abs(f8), abs(d9), abs(f4) FROM v WHERE i4 > -2147483648;
-- fails
SELECT abs(i4) FROM v;
-- fails
SELECT abs(i8) FROM v;
SELECT id, round(f8), round(f8, 1), round(f4, 2), round(d9), round(d9, 1), round(d18, -1), round(i4), round(i4 % 1000, -2) FROM v;
SELECT id, floor(f8), ceil(f8), floor(d9), ceil(d9), ceiling(d4), floor(i4), floor(f4) FROM v;
SELECT id, round(d38, 2), floor(d38 / 10), ceil(d18) FROM v;
SELECT id, year(da), month(da), day(da), extract(year FROM ts), extract(month FROM ts), extract(day FROM ts) FROM v;
-- falls back: hour
SELECT id, extract(hour FROM ts), extract(minute FROM ts), extract(second FROM ts) FROM v;
SELECT id, da + 1, da - 1, da - DATE '2000-01-01' FROM v WHERE da BETWEEN DATE '1900-01-01' AND DATE '2100-01-01';
SELECT id, da + INTERVAL 1 MONTH, da - INTERVAL 1 YEAR, da + INTERVAL '1 month 3 days', ts + INTERVAL 1 MONTH, ts - INTERVAL 13 MONTHS, ts + INTERVAL 36 HOURS FROM v WHERE da BETWEEN DATE '0001-01-01' AND DATE '2100-01-01';
-- fails
SELECT id, da + INTERVAL 1 DAY, ts + INTERVAL 1 SECOND FROM v;
SELECT id, ts + INTERVAL 1 SECOND FROM v;
SELECT d, d + INTERVAL 1 MONTH, d - INTERVAL 1 MONTH, d + INTERVAL 12 MONTHS, d + INTERVAL 1 DAY FROM (VALUES (DATE '2024-01-31'), (DATE '2024-02-29'), (DATE '2023-12-31'), (DATE '2024-03-31'), (DATE '1969-12-31'), (DATE '0001-01-31')) AS t(d);
SELECT id, ts::DATE, da::TIMESTAMP, ts::VARCHAR FROM v WHERE da BETWEEN DATE '0044-03-15 (BC)' AND DATE '9999-12-31';
-- fails
SELECT id, da::TIMESTAMP FROM v;
SELECT id, da = ts, da < ts, da::TIMESTAMP = ts FROM v WHERE da > DATE '0001-01-01' AND da < DATE '9000-01-01';
SELECT id, TRY_CAST(s AS DATE), TRY_CAST(s AS INTEGER), TRY_CAST(s AS DOUBLE), TRY_CAST(s AS BOOLEAN), TRY_CAST(s AS DECIMAL(9,2)) FROM v;
-- fails
SELECT CAST(s AS INTEGER) FROM v;
SELECT id, CASE WHEN s = '12' THEN CAST(s AS INTEGER) ELSE -1 END FROM v;
SELECT id, CASE WHEN i4 = 0 THEN 0 ELSE 100 // i4 END, CASE WHEN i4 <> 0 THEN 100 % i4 END FROM v;
SELECT id, 1 / i4, i4 / 0, i4 // 0, i4 % 0, f8 / 0, d9 / 0 FROM v;
SELECT id, CASE WHEN i1 < 100 THEN i1 + 1::TINYINT ELSE 0 END FROM v;
SELECT id, CASE WHEN i8 BETWEEN -1000 AND 1000 THEN i8 * i8 END FROM v;
SELECT id, i1 + 1::TINYINT FROM v WHERE i1 < 127;
SELECT id FROM v WHERE i1 < 127 AND i1 + 1::TINYINT > 0;
SELECT id FROM v WHERE s = '12' AND CAST(s AS INTEGER) = 12;
SELECT id, coalesce(i4, CAST('7' AS INTEGER)), coalesce(s, 'x'), coalesce(NULL, i4, 3) FROM v;
-- fails
SELECT i1 + 1::TINYINT FROM v;
-- fails
SELECT i4 * 2 FROM v;
-- fails
SELECT i8 * 4294967296 FROM v;
-- fails
SELECT -i8 FROM v;
-- fails
SELECT u8 + 1::UBIGINT FROM v;
-- fails
SELECT u4 - 4::UINTEGER FROM v;
-- fails
SELECT d38 * 100000 FROM v;
-- fails
SELECT d38 + d38 FROM v;
-- fails
SELECT sum(d38 * 1) FROM v WHERE d38 > 999999999999999999999999999999999;
-- fails
SELECT 170141183460469231731687303715884105727::HUGEINT + id FROM v;
-- fails
SELECT sum(170141183460469231731687303715884105727::HUGEINT - id * 0) FROM v;
-- fails
SELECT CAST(i8 AS INTEGER) FROM v;
-- fails
SELECT CAST(d9 AS DECIMAL(4,1)) FROM v;
-- fails
SELECT CAST(f8 AS INTEGER) FROM v;
-- fails
SELECT error('told so') FROM v;
SELECT CASE WHEN id >= 0 THEN 'fine' ELSE error('not so') END FROM v;
SELECT id, nullif(i4, 0), nullif(s, ''), ifnull(f8, 1.0) FROM v;
SELECT id, i1 + i2::INTEGER, i2 * i4, i4 - u4, u1 + u2::INTEGER, i8 + f8, d4 + d9, d4 * d9, d9 - i4, d18 // 2, f4 * f8, f4 + i8 FROM v WHERE i4 BETWEEN -70000 AND 70000 AND i2 BETWEEN -20000 AND 20000;
SELECT id, u8 + i1 FROM v WHERE u8 < 1000;
SELECT id, i8::HUGEINT * i8, u8::HUGEINT * 2, u8::UHUGEINT + 1, i8::HUGEINT % 1000, i8::HUGEINT // 7 FROM v;
SELECT id, i4 % 7, i4 // 7, -7 % i4, f8 % 2, d9 % 3 FROM v WHERE i4 <> -2147483648;
-- falls back: &
SELECT id, i4 & 255, i4 | 1, i4 << 2, xor(i4, 3), ~i4 FROM v WHERE i4 BETWEEN 0 AND 100;
SELECT id, -f8, -d9, -i4, +i4 FROM v WHERE i4 > 0;
SELECT id, f8 = 'nan'::DOUBLE, f8 > 'inf'::DOUBLE, f8 < 'nan'::DOUBLE, f8 = 0 FROM v;
-- falls back: isnan
SELECT id, isnan(f8), isinf(f8), isfinite(f8) FROM v;
SELECT id, bo AND i4 > 0, bo OR i4 > 0, NOT bo, bo AND NULL, bo OR NULL, bo = TRUE, bo IS TRUE, bo IS NOT FALSE FROM v;
SELECT id, CASE WHEN bo THEN 1 WHEN NOT bo THEN 2 ELSE 3 END, CASE WHEN NULL THEN 1 END, CASE WHEN bo THEN s END FROM v;
SELECT id, i4 IN (1, 2, NULL), i4 NOT IN (1, 2), i4 IN (i1, i2), s IN ('a', 'A', ''), da IN (DATE '1970-01-01'), d9 IN (1, 2.5) FROM v;
SELECT id, i4 BETWEEN i1 AND i8, i4 BETWEEN NULL AND 1, s BETWEEN 'a' AND 'b' FROM v;
-- falls back: greatest
SELECT id, greatest(i4, i1), least(i4, i8, 3), greatest(s, 'b'), least(f8, 1) FROM v;
SELECT id, i4 = d9, d4 = d9, f8 = i8, f4 = f8, u8 = i8, i1 < u1, d38 > i8, d18 = f8 FROM v;
SELECT min(f8), max(f8), min(f4), max(f4), min(s), max(s), min(da), max(ts), min(bo), max(bo) FROM v;
SELECT f8, count(*) FROM v GROUP BY f8;
SELECT f8 = -0.0, count(*) FROM v GROUP BY f8 = -0.0;
SELECT sum(f8), avg(f8) FROM v WHERE f8 BETWEEN -1000 AND 1000;
SELECT sum(d38), avg(d38), sum(d18), avg(d18), sum(d4), avg(d4), avg(i8), avg(u8), sum(u8), sum(i8) FROM v WHERE d38 < 1000 AND d38 > -1000;
SELECT sum(i8::HUGEINT), avg(i8::HUGEINT), sum(bo::INT) FROM v;
SELECT DATE 'infinity', DATE '-infinity', TIMESTAMP 'infinity', DATE 'infinity' > DATE '9999-12-31';
SELECT DATE '0044-03-15 (BC)', TIMESTAMP '0044-03-15 (BC) 12:00:00.5', TIMESTAMP '290308-12-22 (BC) 00:00:00', DATE '5877642-06-25 (BC)', ts::VARCHAR FROM v;
SELECT id, date_part('year', da), date_part('month', ts) FROM v;
-- falls back: dayofweek
SELECT dayofweek(da), quarter(da), week(da) FROM v WHERE da BETWEEN DATE '1900-01-01' AND DATE '2100-01-01';
-- falls back: isfinite
SELECT id FROM v WHERE isfinite(da);
SELECT id, ts - INTERVAL 1 DAY > TIMESTAMP '2000-01-01' FROM v;
-- falls back: sqrt
SELECT id, sqrt(abs(f8)), power(f8, 2), ln(2), exp(1) FROM v WHERE f8 BETWEEN 0 AND 1000;
SELECT id, i4::BOOLEAN, bo::INTEGER, s::VARCHAR(3), i1::DECIMAL(5,2), bo::VARCHAR FROM v;
SELECT id, 'a' = s, 'x' || id, id::VARCHAR || 'y' FROM v;
SELECT id, i4::DOUBLE / 3, i4 / 3, i4::FLOAT / 3, d9 / 3, 1.0 / 3 FROM v;
-- falls back: collation
SELECT id, s COLLATE NOCASE = 'a' FROM v;
-- falls back: WINDOW
SELECT id, row_number() OVER (ORDER BY id) FROM v;
-- falls back: WINDOW
SELECT id, sum(i1) OVER (PARTITION BY bo ORDER BY id) FROM v;
-- falls back: median
SELECT median(i4) FROM v;
-- falls back: string_agg
SELECT string_agg(s, ',' ORDER BY id) FROM v;
-- falls back: regexp
SELECT count(*) FROM v WHERE regexp_matches(s, 'a.*c');
-- falls back: unnest
SELECT unnest([1, 2, 3]);
-- falls back: SAMPLE
SELECT count(*) >= 0 FROM v USING SAMPLE 100%;
-- falls back: range
SELECT * FROM range(5);
-- falls back: STRUCT
SELECT {'a': id} FROM v WHERE id < 3;
-- falls back: LIST
SELECT [id, 2] FROM v WHERE id < 3;
-- falls back: TIME
SELECT ts::TIME FROM v WHERE isfinite(ts);
-- falls back: RECURSIVE
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r;
SELECT d % e, x % d, d % x, x % 3, y % 0.5::DOUBLE FROM (VALUES (5::DECIMAL(38,0), 0::DECIMAL(18,2), 5::DOUBLE, 0::DOUBLE), (7, 2.5, 7, 2.5)) t(x, y, d, e);
-- falls back: function %
SELECT x % y FROM (VALUES (5::DECIMAL(38,0), 0::DECIMAL(18,2)), (7, 2.5)) t(x, y);
-- falls back: function %
SELECT 100.00 % x FROM (VALUES (5::DECIMAL(38,0)), (0)) t(x);
-- falls back: function %
SELECT x % i FROM (VALUES (0.5::DECIMAL(38,38), 0::TINYINT), (0.25, 1)) t(x, i);
-- falls back: function substring
SELECT id, substring(CASE WHEN i4 > 0 THEN 'abc' ELSE upper('x') END, -5, 3) FROM v;
SELECT id, substring(CASE WHEN i4 > 0 THEN 'abc' ELSE upper('x') END, 2, 0), substring(CASE WHEN i4 > 0 THEN 'abc' ELSE 'x' END, 2), substring(CASE WHEN i4 > 0 THEN 'abc' ELSE 'x' END, 5, 3) FROM v;
SELECT id, substring(CASE WHEN i4 > 0 THEN s ELSE 'xyz' END, -5, 3), substring(i4::VARCHAR, -5, 3) FROM v;
SELECT id, s ILIKE '%A_b%', s NOT ILIKE 'É%', s ILIKE upper(s), lower(s) ILIKE s || '%', s ILIKE NULL FROM v;
SELECT id, left(s, 3), right(s, 3), right(s, 100), left(upper(s), 1) || right(lower(s), 1) FROM v;
-- falls back: function left
SELECT id, left(s, -2) FROM v;
-- falls back: function right
SELECT id, right(s, i4) FROM v;
-- falls back: function substring
SELECT substring(m, -9, 7) FROM (SELECT DISTINCT CASE WHEN i4 > 0 THEN 'hello' ELSE 'abc' END AS m FROM v);
-- falls back: function substring
SELECT substring(m, -9, 7) FROM (SELECT 'hello' AS m, id FROM v UNION ALL SELECT 'zz', id FROM v);
-- falls back: function substring
SELECT substring(m, -9, 7), v.id FROM v LEFT JOIN (SELECT 'hello' AS m, id FROM v WHERE id < 20) w USING (id);
SELECT right(m, 7), left(m, 9), substring(m, 2, 3) FROM (SELECT DISTINCT CASE WHEN i4 > 0 THEN 'hello' ELSE 'abc' END AS m FROM v);
SELECT right(CASE WHEN i4 > 0 THEN 'hello' ELSE 'abc' END, 4), left(CASE WHEN i4 > 0 THEN 'hello' ELSE 'abc' END, 4) FROM v;
SELECT substring(s, -9, 7), substring(s, -2), id FROM v;
