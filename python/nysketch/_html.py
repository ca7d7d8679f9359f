"""Short tables for notebooks. All text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

__all__ = ["k_curve", "model", "plan", "result", "sketch"]

# Maximum size of a table; larger ones are hard to read.
_MOST_ROWS = 10
_MOST_COLUMNS = 8


def plan(plan: Any) -> str:
    """Format what a plan measures."""
    return _titled("Plan", _pairs(_measured(plan)))


def sketch(sketch: Any) -> str:
    """Format the contents of a sketch."""
    if sketch.plan.weight_unit is None:
        entries = {"rows": f"{sketch.rows:,}"}
    else:
        entries = {"weight of the rows": f"{sketch.weight:,.6g}"}
    if sketch.skipped:
        entries["skipped as invalid"] = f"{sketch.skipped:,}"
    return _titled("Sketch", _pairs({**entries, **_measured(sketch.plan)}))


def model(model: Any) -> str:
    """Format a model, and a table of its clusters or components."""
    report = model.report
    entries = {"task": model.task, "k": model.k, "rows": f"{model.rows:,}"}
    entries |= {"decoder": report["decoder"], "status": report["status"]}
    if model.task == "gmm":
        entries["covariances"] = model.covariance_type
        if likelihood := report["likelihood"]:
            mean, low, high = (likelihood[name] for name in ("mean", "low", "high"))
            entries["mean log-likelihood"] = f"{mean:.4g} ({low:.4g} to {high:.4g}), estimated"
        if report["notes"]:
            entries["notes"] = "; ".join(report["notes"])
    names = list(model.columns)
    if model.task == "pca":
        lead, shares = "share of variance", model.explained_variance_ratio
        places = model.components
    else:
        lead, shares = "share", model.weights
        places = model.means if model.task == "gmm" else model.centres
    header = ["", lead, *names[:_MOST_COLUMNS]]
    if len(names) > _MOST_COLUMNS:
        header.append("…")
    # A category is represented by its most frequent level.
    levels = {} if model.task == "pca" else dict(list(model.levels.items())[:_MOST_COLUMNS])
    shares_of = model.level_shares
    rows = []
    for i in range(min(model.k, _MOST_ROWS)):
        row = [str(i), f"{100 * shares[i]:.1f} %", *(_number(x) for x in places[i][:_MOST_COLUMNS])]
        row += ["…"] * (len(header) - len(row))
        rows.append(row + [_most(levels[name], shares_of[name][i]) for name in levels])
    header += levels
    if model.k > _MOST_ROWS:
        rows.append(["…"] * len(header))
    return _titled("Model", _pairs(entries) + _table(header, rows))


def _most(levels: Sequence[str], shares: Any) -> str:
    most = max(range(len(levels)), key=lambda level: shares[level])
    return f"{levels[most]} {100 * shares[most]:.0f} %"


def k_curve(curve: Any) -> str:
    """Format the risks over k."""
    measures = {"estimated risk": curve.risks, "BIC": curve.bics, "ICL": curve.icls}
    measures = {name: values for name, values in measures.items() if None not in values}
    rows = [
        [str(k), *(_number(x) for x in values), "suggested" if k == curve.suggested else ""]
        for k, *values in zip(curve.ks, *measures.values(), strict=True)
    ]
    return _titled("KCurve", _table(["k", *measures, ""], rows))


def result(result: Any) -> str:
    """Format the entries of a result."""
    return _titled(type(result).__name__, _entries(result))


def _measured(plan: Any) -> dict[str, str]:
    names = plan.columns
    more = ", …" if len(names) > _MOST_COLUMNS else ""
    entries = {"columns": f"{len(names)}: {', '.join(names[:_MOST_COLUMNS])}{more}"}
    if plan.categories:
        names = list(plan.categories)
        more = ", …" if len(names) > _MOST_COLUMNS else ""
        entries["categories"] = f"{len(names)}: {', '.join(names[:_MOST_COLUMNS])}{more}"
    if plan.landmarks is not None:
        entries["landmarks"] = f"{len(plan.landmarks)} ({plan.sampling})"
    else:
        entries["frequencies"] = str(len(plan.frequencies))
    if plan.witnesses is not None:
        entries["witnesses"] = str(len(plan.witnesses))
    entries["kernel"] = plan.kernel
    entries["bandwidths σ²"] = ", ".join(_number(b) for b in plan.bandwidths)
    entries["sums"] = ", ".join(plan.collect)
    entries["fingerprint"] = plan.fingerprint[:16]
    return entries


def _entries(entries: Mapping[str, Any]) -> str:
    """Format one line per entry; nested mappings become nested tables."""
    lines = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{_cell(value)}</td></tr>'
        for name, value in entries.items()
    )
    return f"<table>{lines}</table>"


def _cell(value: Any) -> str:
    if isinstance(value, Mapping):
        return _entries(value)
    if isinstance(value, tuple) and value and all(isinstance(item, Mapping) for item in value):
        header = list(value[0])
        rows = [[_text(item.get(name)) for name in header] for item in value[:_MOST_ROWS]]
        if len(value) > _MOST_ROWS:
            rows.append(["…"] * len(header))
        return _table(header, rows)
    return escape(_text(value))


def _text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(item)}" for name, item in value.items())
    if isinstance(value, (tuple, list)):
        more = ", …" if len(value) > _MOST_COLUMNS else ""
        return ", ".join(_text(item) for item in value[:_MOST_COLUMNS]) + more
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


def _number(x: float) -> str:
    return f"{x:.4g}"


def _pairs(entries: Mapping[str, Any]) -> str:
    return _entries({name: str(value) for name, value in entries.items()})


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(c)}</{tag}>" for c in cells) + "</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table><thead>{line(header, 'th')}</thead><tbody>{body}</tbody></table>"


def _titled(title: str, body: str) -> str:
    return f"<div><strong>{escape(title)}</strong>{body}</div>"
