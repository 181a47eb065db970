"""Lazy methods of datasets that change rows and columns: nothing runs yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from troupe.data import _blocks, _expressions, _options, _plan
from troupe.data._arrangement import Arrangement
from troupe.data._options import positive
from troupe.data._plan import Op

if TYPE_CHECKING:
    import pyarrow.compute as pc

    from troupe.data._dataset import Dataset


class Transforms(Arrangement):
    """The lazy methods.

    Arguments that many of them have, as Ray's:

    `fn`: a function, or a class whose instances are made in a pool of actors and called. `fn_args`,
    `fn_kwargs`: what it is called with besides; `fn_constructor_args`, `fn_constructor_kwargs`:
    what a class is made with. `concurrency`: how many at once, of a class (least, most) too;
    `compute`: TaskPoolStrategy or ActorPoolStrategy instead. The others are options of tasks and
    actors (docs/guides/tasks.md).
    """

    def _then(self, op: Op) -> Dataset:
        return self._made(_plan.Apply(self._node, op))

    def map_batches(
        self,
        fn: Callable[..., Any],
        *,
        batch_size: int | None | str = None,
        compute: _options.Strategy = None,
        batch_format: str | None = "default",
        zero_copy_batch: bool = True,
        fn_args: Iterable[Any] | None = None,
        fn_kwargs: Mapping[str, Any] | None = None,
        fn_constructor_args: Iterable[Any] | None = None,
        fn_constructor_kwargs: Mapping[str, Any] | None = None,
        num_cpus: float | None = None,
        num_gpus: float | None = None,
        memory: float | None = None,
        concurrency: int | tuple[int, ...] | None = None,
        udf_modifying_row_count: bool = True,
        label_selector: Mapping[str, str] | None = None,
        fallback_strategy: Sequence[Mapping[str, Any]] | None = None,
        max_calls: int | None = None,
        resources: Mapping[str, float] | None = None,
        accelerator_type: str | None = None,
        runtime_env: Mapping[str, Any] | None = None,
        ray_remote_args_fn: Callable[[], Mapping[str, Any]] | None = None,
        **ray_remote_args: object,
    ) -> Dataset:
        """The batches that `fn` makes of batches of `batch_size` rows (None: whole blocks) in
        `batch_format`, as iter_batches() has them.

        `fn` returns a batch, in any of the formats, or an iterator of batches. A batch is of one
        block, so that the last one of each may have fewer rows. `zero_copy_batch=False`: arrays
        that may be written to. `udf_modifying_row_count=False` promises as many rows as were given,
        which keeps counts and equal shares known beforehand. Raises TypeError or ValueError for
        arguments that can never be right.

            ds.map_batches(lambda batch: {"y": batch["x"] * 2}, batch_size=1024)
        """
        size = (
            None
            if batch_size in (None, "auto", "default")
            else positive("map_batches", "batch_size", batch_size)
        )
        given = {
            "num_cpus": num_cpus,
            "num_gpus": num_gpus,
            "memory": memory,
            "label_selector": label_selector,
            "fallback_strategy": fallback_strategy,
            "max_calls": max_calls,
            "resources": resources,
            "accelerator_type": accelerator_type,
            "runtime_env": runtime_env,
            "ray_remote_args_fn": ray_remote_args_fn,
            **ray_remote_args,
        }
        return self._then(
            _options.op_of(
                "map_batches",
                fn,
                given,
                compute=compute,
                concurrency=concurrency,
                fn_args=fn_args,
                fn_kwargs=fn_kwargs,
                fn_constructor_args=fn_constructor_args,
                fn_constructor_kwargs=fn_constructor_kwargs,
                batch_size=size,
                batch_format=_blocks.format_of(batch_format, "map_batches"),
                zero_copy=zero_copy_batch,
                keeps_rows=not udf_modifying_row_count,
            )
        )

    def map(
        self,
        fn: Callable[..., Any],
        *,
        compute: _options.Strategy = None,
        fn_args: Iterable[Any] | None = None,
        fn_kwargs: Mapping[str, Any] | None = None,
        fn_constructor_args: Iterable[Any] | None = None,
        fn_constructor_kwargs: Mapping[str, Any] | None = None,
        num_cpus: float | None = None,
        num_gpus: float | None = None,
        memory: float | None = None,
        concurrency: int | tuple[int, ...] | None = None,
        label_selector: Mapping[str, str] | None = None,
        fallback_strategy: Sequence[Mapping[str, Any]] | None = None,
        max_calls: int | None = None,
        resources: Mapping[str, float] | None = None,
        accelerator_type: str | None = None,
        runtime_env: Mapping[str, Any] | None = None,
        ray_remote_args_fn: Callable[[], Mapping[str, Any]] | None = None,
        **ray_remote_args: object,
    ) -> Dataset:
        """The rows that `fn` makes of rows: a dict of each.

        ds.map(lambda row: {"y": row["x"] * 2})
        """
        given = {
            "num_cpus": num_cpus,
            "num_gpus": num_gpus,
            "memory": memory,
            "label_selector": label_selector,
            "fallback_strategy": fallback_strategy,
            "max_calls": max_calls,
            "resources": resources,
            "accelerator_type": accelerator_type,
            "runtime_env": runtime_env,
            "ray_remote_args_fn": ray_remote_args_fn,
            **ray_remote_args,
        }
        return self._then(
            _options.op_of(
                "map",
                fn,
                given,
                compute=compute,
                concurrency=concurrency,
                fn_args=fn_args,
                fn_kwargs=fn_kwargs,
                fn_constructor_args=fn_constructor_args,
                fn_constructor_kwargs=fn_constructor_kwargs,
            )
        )

    def flat_map(
        self,
        fn: Callable[..., Any],
        *,
        compute: _options.Strategy = None,
        fn_args: Iterable[Any] | None = None,
        fn_kwargs: Mapping[str, Any] | None = None,
        fn_constructor_args: Iterable[Any] | None = None,
        fn_constructor_kwargs: Mapping[str, Any] | None = None,
        num_cpus: float | None = None,
        num_gpus: float | None = None,
        memory: float | None = None,
        concurrency: int | tuple[int, ...] | None = None,
        label_selector: Mapping[str, str] | None = None,
        fallback_strategy: Sequence[Mapping[str, Any]] | None = None,
        max_calls: int | None = None,
        resources: Mapping[str, float] | None = None,
        accelerator_type: str | None = None,
        runtime_env: Mapping[str, Any] | None = None,
        ray_remote_args_fn: Callable[[], Mapping[str, Any]] | None = None,
        **ray_remote_args: object,
    ) -> Dataset:
        """The rows that `fn` makes of rows: a list, or an iterator, of dicts of each.

        ds.flat_map(lambda row: [{"word": word} for word in row["text"].split()])
        """
        given = {
            "num_cpus": num_cpus,
            "num_gpus": num_gpus,
            "memory": memory,
            "label_selector": label_selector,
            "fallback_strategy": fallback_strategy,
            "max_calls": max_calls,
            "resources": resources,
            "accelerator_type": accelerator_type,
            "runtime_env": runtime_env,
            "ray_remote_args_fn": ray_remote_args_fn,
            **ray_remote_args,
        }
        return self._then(
            _options.op_of(
                "flat_map",
                fn,
                given,
                compute=compute,
                concurrency=concurrency,
                fn_args=fn_args,
                fn_kwargs=fn_kwargs,
                fn_constructor_args=fn_constructor_args,
                fn_constructor_kwargs=fn_constructor_kwargs,
                keeps_rows=False,
            )
        )

    def filter(
        self,
        fn: Callable[..., Any] | None = None,
        expr: str | pc.Expression | None = None,
        *,
        compute: _options.Strategy = None,
        fn_args: Iterable[Any] | None = None,
        fn_kwargs: Mapping[str, Any] | None = None,
        fn_constructor_args: Iterable[Any] | None = None,
        fn_constructor_kwargs: Mapping[str, Any] | None = None,
        num_cpus: float | None = None,
        num_gpus: float | None = None,
        memory: float | None = None,
        concurrency: int | tuple[int, ...] | None = None,
        label_selector: Mapping[str, str] | None = None,
        fallback_strategy: Sequence[Mapping[str, Any]] | None = None,
        max_calls: int | None = None,
        resources: Mapping[str, float] | None = None,
        accelerator_type: str | None = None,
        runtime_env: Mapping[str, Any] | None = None,
        ray_remote_args_fn: Callable[[], Mapping[str, Any]] | None = None,
        **ray_remote_args: object,
    ) -> Dataset:
        """The rows for which `fn(row)` is true, or `expr` is: a text such as "x > 3 and name in
        ['a', 'b']", or a pyarrow.compute.Expression, which Arrow evaluates many times faster.

            ds.filter(expr="age >= 18")
        """
        if (fn is None) == (expr is None):
            raise ValueError("filter() takes a function, or expr=, and not both")
        if expr is not None:
            made = _expressions.of_text(expr) if isinstance(expr, str) else expr
            return self._then(Op("expr", name=f"filter({expr})", keeps_rows=False, settings=made))
        given = {
            "num_cpus": num_cpus,
            "num_gpus": num_gpus,
            "memory": memory,
            "label_selector": label_selector,
            "fallback_strategy": fallback_strategy,
            "max_calls": max_calls,
            "resources": resources,
            "accelerator_type": accelerator_type,
            "runtime_env": runtime_env,
            "ray_remote_args_fn": ray_remote_args_fn,
            **ray_remote_args,
        }
        return self._then(
            _options.op_of(
                "filter",
                fn,
                given,
                compute=compute,
                concurrency=concurrency,
                fn_args=fn_args,
                fn_kwargs=fn_kwargs,
                fn_constructor_args=fn_constructor_args,
                fn_constructor_kwargs=fn_constructor_kwargs,
                keeps_rows=False,
            )
        )

    def add_column(
        self,
        col: str,
        fn: Callable[[Any], Any],
        *,
        batch_format: str | None = "pandas",
        compute: _options.Strategy = None,
        concurrency: int | None = None,
        num_cpus: float | None = None,
        num_gpus: float | None = None,
        memory: float | None = None,
        label_selector: Mapping[str, str] | None = None,
        fallback_strategy: Sequence[Mapping[str, Any]] | None = None,
        max_calls: int | None = None,
        resources: Mapping[str, float] | None = None,
        accelerator_type: str | None = None,
        runtime_env: Mapping[str, Any] | None = None,
        **ray_remote_args: object,
    ) -> Dataset:
        """With a column more (or another one of that name): what `fn` makes of a batch in
        `batch_format`.

        ds.add_column("total", lambda frame: frame["price"] * frame["count"])
        """
        if not isinstance(col, str):
            raise TypeError(f"add_column({col!r}): the column's name")
        given = {
            "num_cpus": num_cpus,
            "num_gpus": num_gpus,
            "memory": memory,
            "label_selector": label_selector,
            "fallback_strategy": fallback_strategy,
            "max_calls": max_calls,
            "resources": resources,
            "accelerator_type": accelerator_type,
            "runtime_env": runtime_env,
            **ray_remote_args,
        }
        return self._then(
            _options.op_of(
                "add_column",
                fn,
                given,
                compute=compute,
                concurrency=concurrency,
                settings=col,
                batch_format=_blocks.format_of(batch_format, "add_column"),
            )
        )

    def select_columns(
        self,
        cols: str | list[str],
        *,
        compute: _options.Strategy = None,
        concurrency: int | None = None,
        num_cpus: float | None = None,
        num_gpus: float | None = None,
        memory: float | None = None,
        label_selector: Mapping[str, str] | None = None,
        fallback_strategy: Sequence[Mapping[str, Any]] | None = None,
        max_calls: int | None = None,
        resources: Mapping[str, float] | None = None,
        accelerator_type: str | None = None,
        runtime_env: Mapping[str, Any] | None = None,
        **ray_remote_args: object,
    ) -> Dataset:
        """These columns alone, in this order.

        Of Parquet files right after they are read, no others are read. Arguments of where it runs
        mean nothing.
        """
        names = (cols,) if isinstance(cols, str) else tuple(cols)
        if (
            not names
            or not all(isinstance(name, str) for name in names)
            or len(set(names)) < len(names)
        ):
            raise ValueError(f"select_columns({cols!r}): names of columns, each once")
        return self._then(Op("select", name="select_columns()", settings=names))

    def drop_columns(
        self,
        cols: list[str],
        *,
        compute: _options.Strategy = None,
        concurrency: int | None = None,
        num_cpus: float | None = None,
        num_gpus: float | None = None,
        memory: float | None = None,
        label_selector: Mapping[str, str] | None = None,
        fallback_strategy: Sequence[Mapping[str, Any]] | None = None,
        max_calls: int | None = None,
        resources: Mapping[str, float] | None = None,
        accelerator_type: str | None = None,
        runtime_env: Mapping[str, Any] | None = None,
        **ray_remote_args: object,
    ) -> Dataset:
        """Without these columns. Arguments of where it runs mean nothing."""
        return self._then(
            Op(
                "drop",
                name="drop_columns()",
                settings=(cols,) if isinstance(cols, str) else tuple(cols),
            )
        )

    def rename_columns(
        self,
        names: list[str] | dict[str, str],
        *,
        concurrency: int | tuple[int, ...] | None = None,
        num_cpus: float | None = None,
        num_gpus: float | None = None,
        memory: float | None = None,
        label_selector: Mapping[str, str] | None = None,
        fallback_strategy: Sequence[Mapping[str, Any]] | None = None,
        max_calls: int | None = None,
        resources: Mapping[str, float] | None = None,
        accelerator_type: str | None = None,
        runtime_env: Mapping[str, Any] | None = None,
        **ray_remote_args: object,
    ) -> Dataset:
        """With other names: of some columns (a dict), or of all (a list).

        Arguments of where it runs mean nothing.
        """
        if not isinstance(names, (Mapping, list, tuple)) or not names:
            raise TypeError(
                f"rename_columns({names!r}): a dict of old and new names, or a list of all new ones"
            )
        return self._then(
            Op(
                "rename",
                name="rename_columns()",
                settings=dict(names) if isinstance(names, Mapping) else tuple(names),
            )
        )
