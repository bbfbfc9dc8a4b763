"""The functions of Spark 4.1 that do more than turn one row's values into a value.

Taken from Spark's own registry (``DESCRIBE FUNCTION``'s groups); a live test compares the two. A function
that is in no list is a scalar one. Were that wrong, Spark itself would refuse the rewritten query, because
the source coordinates that we add stand outside of the aggregate (``MISSING_GROUP_BY``).
"""

from __future__ import annotations

_AGGREGATES = """
    any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate
    approx_top_k_combine array_agg avg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg
    bitmap_or_agg bool_and bool_or collect_list collect_set corr count count_if count_min_sketch covar_pop
    covar_samp every first first_value grouping grouping_id histogram_numeric hll_sketch_agg hll_union_agg
    kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kurtosis last last_value listagg max
    max_by mean median min min_by mode percentile percentile_approx percentile_cont percentile_disc
    regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness
    some std stddev stddev_pop stddev_samp string_agg sum theta_intersection_agg theta_sketch_agg
    theta_union_agg try_avg try_sum var_pop var_samp variance
    """
AGGREGATES = frozenset(_AGGREGATES.split())
"""One value for many rows."""

RANKINGS = frozenset(
    {"cume_dist", "dense_rank", "lag", "lead", "nth_value", "ntile", "percent_rank", "rank", "row_number"}
)
"""Functions that need an OVER clause."""

TIME_WINDOWS = frozenset({"window", "session_window"})
"""Spark drops rows without a time and repeats rows for sliding windows, beside what the SQL says."""

GENERATORS = {
    "explode": "explode_outer",
    "explode_outer": "explode_outer",
    "posexplode": "posexplode_outer",
    "posexplode_outer": "posexplode_outer",
    "inline": "inline_outer",
    "inline_outer": "inline_outer",
}
"""Rows of an array or map, with the form that keeps a row whose array is empty or null."""

OTHER_GENERATORS = frozenset({"stack", "collations", "sql_keywords"})
"""Generators without such a form."""

ONE_ROW_GENERATORS = frozenset({"json_tuple"})
"""Generators that always make exactly one row."""
