# The example prints what the program prints.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$PYTHON" -c "import duckdb; duckdb.execute(\"COPY (SELECT range AS id FROM range(1000)) TO '$dir/t.parquet'\")"
sum=$("$EXAMPLE" "$dir" 'SELECT id FROM t')
[ "$sum" = 499500 ] || { echo "the example printed '$sum'"; exit 1; }
[ "$sum" = "$("$STACHIO" -d "$dir" --format csv -c 'SELECT sum(id) FROM t' | tail -1)" ]
status=0
"$EXAMPLE" "$dir" 'SELECT nothing FROM t' 2>"$dir/error" || status=$?
[ "$status" = 1 ] && grep -q nothing "$dir/error"
